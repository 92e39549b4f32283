"""Run folders for tests: real configs of presets with curves and scores from formulas."""

import json
from dataclasses import replace

import numpy as np

from optimist.config.toml import to_toml
from optimist.presets import get_preset


def write_run(folder, preset, seed=0, score=1.0, points=12, finished=True, steps=None, changes=None, **parameters):
    """Write a folder like that of `optimist train`, with returns that rise to `score`."""
    config = replace(get_preset(preset)(**parameters), seed=seed, **(changes or {}))
    config = replace(config, total_steps=steps or config.total_steps)
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(to_toml(config))
    total = config.total_steps
    lines = []
    for at in range(1, points + 1):
        share = at / points
        line = {"step": int(total * share), "rollout/raw_return": score * (1 - np.exp(-4 * share)) + 0.01 * seed}
        line |= {"policy/entropy": 2.0 * (1 - share), "policy/kl": 0.01, "loss/policy": -0.01, "loss/value": 0.5}
        line |= {"time/collect": 0.2, "time/update": 0.6, "time/steps_per_second": 900.0, "rollout/length": 30.0}
        if config.opr.enabled:
            line |= {"opr/threshold": score * share, "opr/memory_return": score * share, "opr/memory_fill": share}
            line |= {"opr/memory_episodes": 10.0 * at, "opr/memory_transitions": 100.0 * at, "opr/admitted": 1.0}
        lines.append(json.dumps(line))
    if not finished:
        lines = lines[: points // 2]
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    if finished:
        goal = {"goal_seen": True, "first_goal_step": 5, "solved": score > 0.5} if preset.startswith("deepsea") else {}
        summary = {"preset": preset, "env": config.env.id, "seed": seed, "steps": total, "updates": points}
        summary |= {"last_100_return": score, "episodes_in_statistic": 100, "episodes": 1000, "time/seconds": 60.0}
        summary |= {"best_evaluation": {"mean_return": score * 1.1, "step": 5}, "time/steps_per_second": 900.0}
        summary |= {"final_evaluation": {"actions": "sampled", "episodes": 30, "mean_return": score * 0.9}}
        (folder / "summary.json").write_text(json.dumps(summary | goal))
    return folder
