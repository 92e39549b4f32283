"""Every metric with its unit and meaning; `python -m optimist.tracking.metrics` prints docs/metrics.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Metric(NamedTuple):
    """What a number in metrics.jsonl counts and says."""

    unit: str
    meaning: str


METRICS: dict[str, Metric] = {
    "rollout/raw_return": Metric("reward", "mean raw return of the last 100 finished training episodes"),
    "rollout/raw_return_max": Metric("reward", "highest raw return of a training episode so far"),
    "rollout/length": Metric("steps", "mean length of the last 100 finished training episodes"),
    "rollout/episodes": Metric("episodes", "training episodes finished so far"),
    "rollout/goal_rate": Metric("share", "of the last 100 training episodes, those that reached the goal"),
    "rollout/goals": Metric("episodes", "training episodes that reached the goal so far"),
    "loss/total": Metric("–", "what the optimiser minimises, mean over the update's minibatches"),
    "loss/policy": Metric("–", "policy gradient term: the clipped surrogate of PPO, −log π · advantage of A2C"),
    "loss/value": Metric("–", "c_v times the value error"),
    "loss/entropy": Metric("–", "−c_ent times the policy's entropy"),
    "loss/anchor": Metric("–", "what the anchor adds: λ_BC times L_BC for OPR, 0 without"),
    "loss/bc": Metric("nats", "L_BC, the cloning loss on good steps before its weight λ_BC"),
    "policy/entropy": Metric("nats", "mean entropy of the policy on the rollout; a fall to 0 is entropy collapse"),
    "policy/approx_kl": Metric("nats", "KL from the policy that collected to the updated one, estimated on its rows"),
    "policy/clip_fraction": Metric("share", "fresh rows whose ratio π_θ/π_old left 1 ± ε"),
    "policy/epochs": Metric("passes", "passes over the rollout; fewer than configured when target_kl stopped them"),
    "value/explained_variance": Metric("–", "1 − Var(returns − values) / Var(returns) before the update; 1 is perfect"),
    "optimizer/learning_rate": Metric("–", "learning rate of this update"),
    "optimizer/grad_norm": Metric("–", "mean global gradient norm before clipping"),
    "opr/threshold": Metric("reward", "τ, the percentile P of the last K returns (the mean over groups, if there are)"),
    "opr/threshold/<group>": Metric("reward", "τ of one group, where thresholds are per group"),
    "opr/admitted": Metric("episodes", "episodes that entered the memory M in this update"),
    "opr/admitted_total": Metric("episodes", "episodes that entered M so far"),
    "opr/evicted": Metric("episodes", "episodes that left M in this update"),
    "opr/memory_transitions": Metric("steps", "transitions in M"),
    "opr/memory_episodes": Metric("episodes", "episodes in M"),
    "opr/memory_fill": Metric("share", "how full M is: the larger of transitions and episodes over their capacities"),
    "opr/memory_return": Metric("reward", "mean return of the episodes in M"),
    "opr/memory_return_min": Metric("reward", "lowest return in M"),
    "opr/memory_return_max": Metric("reward", "highest return in M"),
    "opr/memory_age": Metric("updates", "mean time since the episodes in M were admitted"),
    "opr/memory_bytes": Metric("bytes", "memory used by M and by the unfinished episodes"),
    "opr/log_ratio": Metric("nats", "mean Δ = log π_good − log π_θ where it is defined"),
    "opr/shaping": Metric("reward", "mean |r^OPR − r| where Δ is defined"),
    "opr/shaping_saturated": Metric("share", "of the Δ̃, those at the bound ± δ"),
    "opr/augment_weight": Metric("–", "mean importance weight min(c, π_start/π_recorded) of replayed rows"),
    "opr/augment_rows": Metric("rows", "replayed good rows that joined the minibatches of this update"),
    "opr/bc_coef": Metric("–", "λ_BC of this update"),
    "opr/bc_weight": Metric(
        "share", "mean weight of a cloned step; small when most of M is no better than the value says"
    ),
    "opr/bc_phase_loss": Metric("nats", "mean L_BC of the separate cloning phase, when one ran"),
    "opr/reference_loss": Metric("nats", "mean L_BC of the cloned π_good at its last refresh"),
    "evaluate/raw_return": Metric("reward", "mean raw return of the evaluation episodes"),
    "evaluate/length": Metric("steps", "mean length of the evaluation episodes"),
    "evaluate/goal_rate": Metric("share", "evaluation episodes that reached the goal"),
    "time/elapsed": Metric("s", "training time so far, resumed parts included"),
    "time/steps_per_second": Metric("steps/s", "environment steps over wall-clock time since the last line"),
    "time/collect": Metric("s", "stations 1 and 2, environments and policy, since the last line"),
    "time/update": Metric("s", "stations 3 to 7, memory to gradient step, since the last line"),
    "time/save": Metric("s", "checkpoints and evaluation since the last line"),
}

_INTRODUCTION = """# Metrics

Each line of a run's `metrics.jsonl` is one JSON object: `step` (environment steps so far, all environments together)
and the metrics below. The file is the source of truth; TensorBoard and Weights & Biases get the same numbers under the
same names. A value that is not defined at that moment (no episode has ended, the memory is empty) is `null`. Metrics
under `time/` come from the wall clock: two runs with the same config and seed agree in all others.

This page is written by `python -m optimist.tracking.metrics`."""


def without_time(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """The metrics that two equal runs share: all but the wall clock's, `time/…`."""
    return {name: value for name, value in metrics.items() if not name.startswith("time/")}


def undocumented(names: Iterable[str]) -> list[str]:
    """The names that METRICS does not explain; `opr/threshold/Meander` falls under `opr/threshold/<group>`."""
    families = tuple(name.partition("<")[0] for name in METRICS if "<" in name)
    return sorted(name for name in set(names) - {"step"} if name not in METRICS and not name.startswith(families))


def metrics_page() -> str:
    """docs/metrics.md: all metrics, by station."""
    lines = [_INTRODUCTION]
    for station in dict.fromkeys(name.partition("/")[0] for name in METRICS):
        lines += [f"\n## {station}\n", "| metric | unit | meaning |", "|---|---|---|"]
        for name, metric in METRICS.items():
            if name.startswith(f"{station}/"):
                lines.append(f"| `{name}` | {metric.unit} | {metric.meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(metrics_page(), end="")
