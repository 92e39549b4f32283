"""PPO, Cardiff and Cardiff+OPR learn to defend the network of CAGE Challenge 2 against B_line, 30 steps a game.

The paper trains 3,000,000 steps; this is a shortened version of that comparison, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from optimist.cli.arguments import print_result
from optimist.cli.demo.live import check_demo, demo_folder, demo_parser, expected_time, run_live
from optimist.presets import get_preset
from optimist.report.figures import require_matplotlib
from optimist.report.means import difference_interval, mean_interval
from optimist.report.scores import counted
from optimist.training.parallel import Job

if TYPE_CHECKING:
    from optimist.envs.cage2.defender import Defender

MODES = ("argmax", "sampled")
METHODS = {"PPO, 145 actions": "cage2/ppo", "Cardiff": "cage2/cardiff", "Cardiff+OPR": "cage2/cardiff-opr"}
RED, RULES, HORIZON, GAMES = "B_line", "final", 30, 1_000
CORE_SECONDS = 22.0
"""Of one core for a million steps, the mean of the three methods, measured on two."""
FULL_SIZE = 3_000_000
PUBLISHED = (
    ("Cardiff, published weights, rules competition (leaderboard)", "-3.47"),
    ("Cardiff, published weights, rules final (measured on the original, argmax)", "-5.03"),
    ("the paper: Cardiff, 3,000,000 steps (sampled curve, rules not stated)", "-6.2"),
    ("the paper: Cardiff+OPR, 3,000,000 steps (sampled curve, rules not stated)", "-4.2"),
)


def main(argv: Sequence[str]) -> int:
    """Trains, scores the final policies, prints the comparison, writes figure and replay."""
    options = demo_parser("cage2", __doc__ or "", seeds=3, total_steps=1_500_000).parse_all(list(argv))
    check_demo(options)
    import_module("optimist.envs.cage2.env")  # or says what to install, before anything is begun
    require_matplotlib()
    out = demo_folder(options.out)
    jobs = [
        _job(label, preset, seed, options.total_steps, out)
        for seed in range(options.seeds)
        for label, preset in METHODS.items()
    ]
    shortened = f"shortened: {options.total_steps:,} of the paper's {FULL_SIZE:,} steps"
    console = Console(stderr=True)
    console.print(
        f"CAGE 2, {RED}, {HORIZON} steps a game, rules {RULES}; {counted(options.seeds, 'seed')} a method "
        f"({shortened}), {options.jobs} runs at a time; {expected_time(jobs, options.jobs, CORE_SECONDS)}",
        highlight=False,
    )
    run_live(jobs, options.jobs, {"return now": lambda newest: f"{_mean_return(newest):.1f}"})
    rows = [_scores(label, [job for job in jobs if job.label == label]) for label in METHODS]
    Console().print(_table(rows, shortened))
    print(verdict(rows), end="")
    written = [_write_table(rows, shortened, out), _write_replay(jobs, out), *_write_figure(jobs, out, shortened)]
    print(f"Written: {', '.join(str(path) for path in written)}; the runs are in {out}")
    if options.json:
        print_result({"out": str(out), "rows": rows}, as_json=True)
    return 0


def _job(label: str, preset: str, seed: int, total_steps: int, out: Path) -> Job:
    config = get_preset(preset)(red=RED, rules=RULES, horizon=HORIZON)
    config = replace(config, seed=seed, total_steps=total_steps, tensorboard=False)
    return Job(label, config, out / f"{preset.replace('/', '-')}-{seed}")


def _mean_return(newest: list[dict[str, Any]]) -> float:
    returns = [line["rollout/raw_return"] for line in newest if "rollout/raw_return" in line]
    return sum(returns) / len(returns) if returns else float("nan")


def _defender(job: Job) -> Defender:
    from optimist.deploy.defenders import load_defender

    return load_defender([str(job.out)], RULES)


def _scores(label: str, jobs: list[Job]) -> dict[str, Any]:
    """Mean return of the final policies over fresh games, argmax and sampled, with intervals over seeds."""
    from optimist.envs.cage2.score import play

    means: dict[str, list[float]] = {mode: [] for mode in MODES}
    for job in jobs:
        defender = _defender(job)
        for mode, found in means.items():
            returns = play(
                defender,
                GAMES,
                red=RED,
                horizon=HORIZON,
                rules=RULES,
                table=defender.table,
                greedy=mode == "argmax",
                seed=1,
            )
            found.append(float(returns.mean()))
    return {"method": label, "seeds": len(jobs), "steps": jobs[0].config.total_steps} | means


def verdict(rows: list[dict[str, Any]]) -> str:
    """A sentence on what these runs cannot tell, where the 95 % interval of OPR's difference holds 0; else nothing."""
    plain, with_opr = rows[-2:]
    differences = {mode: difference_interval(with_opr[mode], plain[mode]) for mode in MODES}
    undecided = [mode for mode, found in differences.items() if not abs(found.mean) > found.half_width]
    if not undecided:
        return ""
    return (
        f"{counted(with_opr['seeds'], 'short run')} of each cannot tell "
        f"{with_opr['method']} and {plain['method']} apart "
        f"({', '.join(undecided)}). What OPR keeps is to be seen in `optimist demo deepsea`.\n"
    )


def _table(rows: list[dict[str, Any]], shortened: str) -> Table:
    title = f"CAGE 2, {RED}-{HORIZON}, rules {RULES}: mean return of the final policy, {GAMES:,} fresh games a seed"
    table = Table("method", "argmax", "sampled", title=title, caption=f"± 95 % over seeds; {shortened}")
    for row in rows:
        table.add_row(row["method"], *(str(mean_interval(row[mode])) for mode in MODES))
    table.add_section()
    for name, score in PUBLISHED:
        table.add_row(name, score, "")
    return table


def _write_table(rows: list[dict[str, Any]], shortened: str, out: Path) -> Path:
    lines = [
        f"CAGE 2, {RED}-{HORIZON}, rules {RULES}; {shortened}.",
        "",
        "| method | argmax | sampled |",
        "|---|---|---|",
    ]
    lines += [f"| {row['method']} | {mean_interval(row['argmax'])} | {mean_interval(row['sampled'])} |" for row in rows]
    lines += [f"| {name} | {score} | |" for name, score in PUBLISHED]
    path = out / "table.md"
    path.write_text("\n".join([*lines, "", verdict(rows)]), encoding="utf-8")
    return path


def _write_replay(jobs: list[Job], out: Path) -> Path:
    """One game of the last Cardiff+OPR agent, step by step, as a table of hosts."""
    import numpy as np

    from optimist.envs.cage2.actions import action_name
    from optimist.envs.cage2.single import CageEnv

    defender, generator = _defender(jobs[-1]), np.random.default_rng(0)
    env = CageEnv(red=RED, rules=RULES, table=defender.table, horizon=HORIZON, render_mode="ansi")
    observation, _ = env.reset(seed=0)
    defender.reset(1)
    pages, total = [], 0.0
    for _ in range(HORIZON):
        action = int(defender.act(observation[None], greedy=True, generator=generator)[0])
        observation, reward, *_ = env.step(action)
        total += reward
        pages.append(f"blue: {action_name(action)} · reward {reward:.1f} · return so far {total:.1f}\n{env.render()}")
    env.close()
    path = out / "replay.txt"
    path.write_text("\n".join(pages), encoding="utf-8")
    return path


def _write_figure(jobs: list[Job], out: Path, shortened: str) -> list[Path]:
    """Training curves with a zoomed inset, as in the paper."""
    from optimist.report.figures import training_curves

    curves = {label: [job.out for job in jobs if job.label == label] for label in METHODS}
    title = f"CAGE 2, {RED}-{HORIZON}, rules {RULES} ({shortened})"
    return training_curves(curves, out / "curves", title=title, zoom=(-15.0, -2.0))
