"""Print docs/metrics.md: every metric with its unit and meaning, by station."""

from optimist.tracking.writers import known_metrics

INTRODUCTION = """# Metrics

Each line of a run's `metrics.jsonl` is one JSON object: `step` (environment steps so far, all environments together)
and the metrics below. TensorBoard and Weights & Biases get the same numbers under the same names. A value that is not
defined at that moment (no episode has ended, the memory is empty) is `null`. Metrics under `time/` come from the wall
clock: two runs with the same config and seed agree in all others.

This page is written by `python tools/metrics_page.py`."""


def metrics_page() -> str:
    """docs/metrics.md: all metrics, by station."""
    known = known_metrics()
    lines = [INTRODUCTION]
    for station in dict.fromkeys(name.partition("/")[0] for name in known):
        lines += [f"\n## {station}\n", "| metric | unit | meaning |", "|---|---|---|"]
        for name, metric in known.items():
            if name.startswith(f"{station}/"):
                lines.append(f"| `{name}` | {metric.unit} | {metric.meaning} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(metrics_page(), end="")
