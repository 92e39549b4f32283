"""Print docs/metrics.md: every metric with its unit and meaning, by station."""

from optimist.config import RunConfig
from optimist.tracking.writers import known_metrics, tags

INTRODUCTION = """# Metrics

Each line of a run's `metrics.jsonl` is one JSON object: `step` (environment steps so far, all environments together)
and the metrics below. A value that is not defined at that moment (no episode has ended, the memory is empty) is `null`.
Metrics under `time/` come from the wall clock: two runs with the same config and seed agree in all others.

TensorBoard and Weights & Biases get the same numbers. A metric that Stable-Baselines3 has too has its name there, such
as `rollout/ep_rew_mean`; the others keep theirs. `tensorboard --logdir runs` shows all runs below `runs`, and their
settings in the tab HParams.

This page is written by `python tools/metrics_page.py`."""


def metrics_page() -> str:
    """docs/metrics.md: all metrics, by station."""
    known = known_metrics()
    lines = [INTRODUCTION]
    for station in dict.fromkeys(name.partition("/")[0] for name in known):
        lines += [f"\n## {station}\n", "| metric | unit | meaning |", "|---|---|---|"]
        for name, metric in known.items():
            if name.startswith(f"{station}/"):
                lines.append(f"| `{name}` | {metric.unit} | {metric.meaning}{shown_as(name)} |")
    return "\n".join(lines) + "\n"


def shown_as(name: str) -> str:
    """The name and unit in TensorBoard, where they differ."""
    tag, factor = tags(RunConfig()).get(name, (name, 1.0))
    unit = {1.0: "", -1.0: "−1 times this, "}.get(factor, "without c_v, ")
    where = "Weights & Biases" if tag == "eval/step" else "TensorBoard"
    return f"; {where}: {unit}`{tag}`" if tag != name else ""


if __name__ == "__main__":
    print(metrics_page(), end="")
