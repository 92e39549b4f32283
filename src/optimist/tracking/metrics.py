"""Every metric with its unit and meaning; `python -m optimist.tracking.metrics` prints docs/metrics.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Metric(NamedTuple):
    """What a number in metrics.jsonl counts and says."""

    unit: str
    meaning: str


METRICS: dict[str, Metric] = {
    "rollout/episodes": Metric("episodes", "training episodes finished so far"),
    "rollout/raw_return": Metric("reward", "mean raw return of the last 100 finished training episodes"),
    "rollout/length": Metric("steps", "mean length of the last 100 finished training episodes"),
    "rollout/goal_rate": Metric(
        "share", "of the last 100 training episodes, those that reached the goal, if it has one"
    ),
    "rollout/goal_seen": Metric("0 or 1", "whether any training episode has reached the goal so far"),
    "loss/policy": Metric("–", "policy gradient term: the clipped surrogate of PPO, −log π · advantage of A2C"),
    "loss/value": Metric("–", "c_v times the value error"),
    "loss/td": Metric("–", "error of Q: Huber's or squared TD error of DQN, cross-entropy of Rainbow's distributions"),
    "loss/entropy": Metric("–", "−c_ent times the policy's entropy"),
    "loss/anchor": Metric("–", "what the anchor adds: λ_BC times L_BC for OPR, 0 without"),
    "loss/bc": Metric("nats", "L_BC of the last minibatch, weighted per step but before λ_BC"),
    "policy/entropy": Metric(
        "nats", "mean entropy of the policy over the update's rows; a fall to 0 is entropy collapse"
    ),
    "policy/epsilon": Metric("share", "ε: actions taken at random, of a value-based learner"),
    "policy/kl": Metric("nats", "KL from the policy that collected to the updated one, estimated on the update's rows"),
    "q/mean": Metric("reward", "mean Q(s, a) of the replayed steps of this update"),
    "replay/transitions": Metric("steps", "steps kept for replay"),
    "replay/bytes": Metric("bytes", "memory allocated for replay"),
    "opr/threshold": Metric("reward", "τ that the last finished episode met: percentile P of the last K returns"),
    "opr/admitted": Metric("episodes", "episodes that entered the memory M in this update"),
    "opr/memory_transitions": Metric("steps", "transitions in M"),
    "opr/memory_episodes": Metric("episodes", "episodes in M"),
    "opr/memory_fill": Metric("share", "transitions in M over N_max"),
    "opr/memory_return": Metric("reward", "mean return of the episodes in M"),
    "opr/memory_bytes": Metric("bytes", "memory used by M and by the unfinished episodes"),
    "opr/shaping_saturated": Metric("share", "of the Δ̃ of fresh steps, those at the bound ± δ (a π_good network)"),
    "opr/bc_coef": Metric("–", "λ_BC of this update"),
    "opr/beyond_luck": Metric("–", "mean over M of the part of an episode beyond luck (`opr.bc_luck`), 0 to 1"),
    "opr/bc_weight": Metric("–", "mean weight of a cloned step in the last minibatch; near 0 if V expects as much"),
    "loss/sil": Metric("–", "loss of the last self-imitation step, all coefficients included"),
    "sil/stored": Metric("episodes", "finished episodes stored for self-imitation in this update"),
    "sil/transitions": Metric("steps", "past steps that self-imitation can draw"),
    "sil/advantage": Metric("reward", "sum of (R − V)₊ of the last drawn batch, clipped, over its normaliser"),
    "sil/better": Metric("share", "of the last drawn batch, the steps with R > V: those that are imitated"),
    "sil/bytes": Metric("bytes", "memory used by past steps and by the unfinished episodes"),
    "loss/replay": Metric("–", "ACPER: sum of the loss terms on replayed segments, mean over the update's steps"),
    "acper/replay_steps": Metric("steps", "steps that ACPER can replay"),
    "acper/kl": Metric("nats", "KL from the policies that took the replayed steps to the current one, estimated"),
    "acper/truncated": Metric("share", "of the last replayed steps, those whose importance weight was cut at its cap"),
    "evaluation/step": Metric("steps", "the step whose policy that evaluation is of"),
    "evaluation/mean_return": Metric(
        "reward", "mean raw return of the evaluation episodes during training, sampled actions"
    ),
    "time/steps_per_second": Metric("steps/s", "environment steps over wall-clock time, last 20 updates"),
    "time/collect": Metric(
        "s", "stations 1 and 2 of this update: environments and policy; with `policy_lag`, the wait for them"
    ),
    "time/update": Metric("s", "stations 3 to 7 of this update: memory to gradient steps"),
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
