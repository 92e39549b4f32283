"""What `optimist ui` must stand: time to the last curve, cost to a training, memory over an hour, start of a film.

python benchmarks/ui.py curves               200 runs × 10,000 points, fresh server, Chromium, median of 5
python benchmarks/ui.py watched [--pairs 10] a training watched and not watched, both on one core
python benchmarks/ui.py soak [--minutes 60]  resident memory while it watches 20 live run folders
python benchmarks/ui.py film                 an Atari film of 1,000 steps
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np

CHROMIUM = "/usr/bin/chromium"
POINTS = 10_000


@contextlib.contextmanager
def server(runs: Path, *, core: int | None = None) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A fresh server of the runs in a folder; its address and process."""
    command = [sys.executable, "-m", "optimist", "ui", str(runs), "--port", "0", "--no-browser"]
    command = [*([] if core is None else ["taskset", "-c", str(core)]), *command]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        address = re.search(r"http://\S+:\d+", line)[0]
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(address + "/static/icon.svg").close()
                break
            time.sleep(0.1)
        yield address, process
    finally:
        process.terminate()
        process.wait()


@contextlib.contextmanager
def browser() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--headless"])
        yield chromium
        chromium.close()


def write_run(folder: Path, preset: str, seed: int, points: int, **parameters: object) -> Path:
    """A run folder with so many lines of metrics, as wide as those of a training."""
    from dataclasses import replace

    from optimist.config.toml import to_toml
    from optimist.presets import get_preset

    config = replace(get_preset(preset)(**parameters), seed=seed, total_steps=points * 1_000)
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(to_toml(config))
    random = np.random.default_rng(seed)
    with (folder / "metrics.jsonl").open("w") as file:
        file.writelines(metrics_line(n, points, random) for n in range(1, points + 1))
    return folder


def metrics_line(n: int, points: int, random: np.random.Generator) -> str:
    value = 100 * (1 - math.exp(-4 * n / points)) + random.normal()
    line = {"step": 1_000 * n, "loss/policy": -0.01, "loss/value": 0.5, "policy/entropy": 1.2, "policy/kl": 0.01}
    line |= {f"opr/number_{i}": random.random() for i in range(10)} | {"rollout/raw_return": value}
    return json.dumps(line | {"time/collect": 0.1, "time/update": 0.3, "time/steps_per_second": 1_000.0}) + "\n"


def curves(repeats: int) -> dict[str, object]:
    """Seconds from navigation to the last curve drawn; the server is fresh each time."""
    with tempfile.TemporaryDirectory() as place:
        runs = Path(place)
        for seed in range(100):
            for method in ("ppo", "opr"):
                write_run(runs / f"deepsea-{method}-{seed}", f"deepsea/{method}", seed, POINTS, size=8 + seed // 25)
        seconds = []
        with browser() as chromium:
            for _ in range(repeats):
                with server(runs) as (address, _process):
                    page = chromium.new_page(viewport={"width": 1440, "height": 900}, bypass_csp=True)
                    page.goto(address + "/runs", wait_until="commit")
                    page.wait_for_function("performance.getEntriesByName('curves').length > 0")
                    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
                    seconds.append(page.evaluate("performance.getEntriesByName('curves')[0].startTime / 1000"))
                    page.close()
    return {"runs": 200, "points": POINTS, "seconds": seconds, "median": statistics.median(seconds)}


def watched(pairs: int, steps: int) -> dict[str, object]:
    """Steps/s of a training while the page watches it, over those while it is not watched; both on core 0."""
    found: dict[str, object] = {}
    for preset in ("cage2/cardiff-opr", "gym/opr"):
        ratios, shares = [], []
        for pair in range(pairs):
            speed = {}
            for watches in (False, True) if pair % 2 else (True, False):
                speed[watches], share = train(preset, steps, pair, watches)
                shares += [share] if watches else []
            ratios.append(speed[True] / speed[False])
        logs = np.log(ratios)
        half = 1.96 * logs.std(ddof=1) / math.sqrt(pairs) if pairs > 1 else math.nan
        found[preset] = {
            "ratio": math.exp(logs.mean()), "low": math.exp(logs.mean() - half), "high": math.exp(logs.mean() + half),
            "n": pairs, "server share of a core": statistics.median(shares), "ratios": ratios,
        }  # fmt: skip
    return found


def train(preset: str, steps: int, seed: int, watches: bool) -> tuple[float, float]:
    """Steps/s of one training on core 0, and the server's share of that core while it watches."""
    with tempfile.TemporaryDirectory() as place, watcher(Path(place), watches) as process:
        runs, share = Path(place), 0.0
        command = ["taskset", "-c", "0", sys.executable, "-m", "optimist", "train", preset, "--total-steps", str(steps)]
        command += ["--seed", str(seed), "--final-episodes", "0", "--quiet", "--out", str(runs / "run")]
        training = subprocess.Popen(command)
        if process is not None:
            while training.poll() is None and not (runs / "run" / "metrics.jsonl").exists():
                time.sleep(0.05)
            started, used = time.perf_counter(), cpu_seconds(process.pid)
            while training.poll() is None:
                time.sleep(0.2)
            share = (cpu_seconds(process.pid) - used) / (time.perf_counter() - started)
        training.wait()
        summary = json.loads((runs / "run" / "summary.json").read_text())
        return summary["time/steps_per_second"], share


@contextlib.contextmanager
def watcher(runs: Path, watches: bool) -> Iterator[subprocess.Popen[str] | None]:
    """A server on core 0 with a browser that shows its page; its process."""
    if not watches:
        yield None
        return
    with server(runs, core=0) as (address, process), browser() as chromium:
        chromium.new_page().goto(address + "/runs")
        yield process


def soak(minutes: float, folders: int) -> dict[str, object]:
    """Resident memory of the server while a browser watches run folders that a script writes."""
    with tempfile.TemporaryDirectory() as place:
        runs, random, stop = Path(place), np.random.default_rng(0), threading.Event()
        paths = [write_run(runs / f"deepsea-opr-{s}", "deepsea/opr", s, 200, size=8 + s % 4) for s in range(folders)]

        def write() -> None:
            n = 200
            while not stop.wait(1.0):
                n += 1
                for path in paths:
                    with (path / "metrics.jsonl").open("a") as file:
                        file.write(metrics_line(n, 4_000, random))

        threading.Thread(target=write, daemon=True).start()
        marks: list[tuple[float, float]] = []
        with server(runs) as (address, process), browser() as chromium:
            page = chromium.new_page()
            page.goto(address + "/runs")
            started = time.monotonic()
            while (spent := time.monotonic() - started) < minutes * 60:
                page.wait_for_timeout(10_000)
                marks.append((spent / 3600, resident_mb(process.pid)))
                print(f"{spent / 60:5.1f} min {marks[-1][1]:.2f} MB", file=sys.stderr, flush=True)
        stop.set()
        late = np.array([mark for mark in marks if mark[0] * 60 >= minutes / 2])
        slope = float(np.polyfit(late[:, 0], late[:, 1], 1)[0])
        return {"minutes": minutes, "folders": folders, "slope MB/h": slope, "MB": [marks[0][1], marks[-1][1]]}


def film(repeats: int) -> dict[str, object]:
    """Seconds from navigation to the first picture of a stored Atari episode of about 1,000 steps."""
    with tempfile.TemporaryDirectory() as place:
        runs = Path(place)
        command = [sys.executable, "-m", "optimist", "train", "atari/smoke", "--game", "Pong", "--total-steps", "8192"]
        subprocess.run([*command, "--final-episodes", "0", "--quiet", "--out", str(runs / "pong")], check=True)
        seconds, length = [], 0
        with browser() as chromium:
            for _ in range(repeats):
                with server(runs) as (address, _process):
                    page = chromium.new_page(bypass_csp=True)
                    page.goto(address + "/memory?run=pong&sort=length")  # the memory is read; then an episode is chosen
                    page.wait_for_function("performance.getEntriesByName('film').length > 0")
                    page.evaluate("performance.clearMarks(); window.began = performance.now()")
                    page.locator("tbody tr:not(.on) a").first.click()
                    page.wait_for_function("performance.getEntriesByName('film').length > 0")
                    seconds.append(page.evaluate("(performance.getEntriesByName('film')[0].startTime - began) / 1000"))
                    length = int(page.locator("#step").get_attribute("max"))
                    page.close()
    return {"steps": length, "seconds": seconds, "median": statistics.median(seconds)}


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["curves", "watched", "soak", "film"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=200_000, help="of each training that is watched")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--folders", type=int, default=20)
    options = parser.parse_args()
    if shutil.which("taskset") is None or not Path(CHROMIUM).exists():
        sys.exit(f"this benchmark needs taskset and {CHROMIUM}")
    result = {
        "curves": lambda: curves(options.repeats),
        "watched": lambda: watched(options.pairs, options.steps),
        "soak": lambda: soak(options.minutes, options.folders),
        "film": lambda: film(options.repeats),
    }[options.what]()
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
