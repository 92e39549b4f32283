"""The view Report: claims about the selected runs with their intervals, and the full report made on demand."""

from __future__ import annotations

import math
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response

from optimist.errors import OptimistError, RunFolderError
from optimist.report.build import PAGE, build_report
from optimist.report.formatting import counted, short_steps
from optimist.report.rows import collect
from optimist.report.runs import STATISTICS, Run
from optimist.report.study import Family, Study
from optimist.stats.intervals import difference_interval, mean_interval, wilson_interval
from optimist.ui.drawing import axis_text, figure_text, ticks
from optimist.ui.folders import RunInfo

if TYPE_CHECKING:
    from optimist.ui.app import Site

Verdict = Literal["supported", "contradicted", "open"]
FEWEST: Final = 5
"""Seeds of each method below which a claim stays open."""
WIDTH: Final = 480
RIGHT: Final = 24
PAGE_POLICY: Final = "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""The report has styles of its own and no scripts; in the sandbox it has no access to this page."""
MOST_CARDS: Final = 24


@dataclass
class Claim:
    """A comparison of two methods on one environment."""

    title: str
    lead: str
    base: Family
    verdict: Verdict
    why: str
    seeds: str
    difference: float
    low: float
    high: float
    figure: Mapping[str, Any]
    files: Sequence[str]
    computed: str

    @property
    def id(self) -> str:
        """Part of its address."""
        return "".join(letter if letter.isalnum() else "-" for letter in self.title.lower())[:80]


@dataclass
class Making:
    """A full report that is being made, or was."""

    title: str
    folder: Path
    done: bool = False
    error: str = ""


@dataclass
class Reports:
    """The full report of this server: one at a time, in a temporary folder."""

    site: Site
    current: Making | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def make(self, runs: Sequence[RunInfo]) -> None:
        """Start to make the report of these runs, unless one is being made."""
        with self.lock:
            if self.current is not None and not self.current.done:
                return
            self._folder = tempfile.TemporaryDirectory(prefix="optimist-report-")
            self.current = Making(counted(len(runs), "run"), Path(self._folder.name))
            threading.Thread(target=self._build, args=(self.current, paths_of(runs)), daemon=True).start()

    @staticmethod
    def _build(making: Making, folders: Sequence[Path]) -> None:
        try:
            build_report(folders, making.folder)
        except OptimistError as error:
            making.error = " ".join(str(error).split())
        except OSError as error:
            making.error = f"the report cannot be written: {error.strerror}"
        making.done = True


def report_page(site: Site, request: Request) -> Response:
    """The claims about the selected runs, and the full report if it was made."""
    runs = chosen_runs(site, request)
    if not runs:
        return site.page(
            "report.html", request, view="report", runs=[], claims=[], summary="", notes=[], cards=[], **_made(request)
        )
    found, problems = collect(paths_of(runs))
    names = {run.name for run in runs}
    study = Study([run for run in found if _is_selected(run, names, site)], problems)
    claims = [claim for family in study.families for claim in claims_of(family)]
    counts = {
        verdict: sum(claim.verdict == verdict for claim in claims) for verdict in ("supported", "contradicted", "open")
    }
    summary = ", ".join(f"{number} {verdict}" for verdict, number in counts.items() if number)
    return site.page(
        "report.html", request, view="report", runs=runs, claims=claims, cards=claims[:MOST_CARDS], summary=summary,
        notes=_notes(runs, study, claims), **_made(request),
    )  # fmt: skip


def chosen_runs(site: Site, request: Request) -> list[RunInfo]:
    """The runs that the address names, or all."""
    from optimist.ui.app import selected

    runs = [run for run in site.folder.scan() if run.status != "broken"]
    return selected(runs, request.query_params) if "runs" in request.query_params else runs


def report_make(site: Site, request: Request) -> Response:
    """Start to make the full report; a POST."""
    runs = chosen_runs(site, request)
    request.app.state.reports.make(runs)
    return RedirectResponse(f"/report?{request.url.query}", 303)


def report_made(site: Site, request: Request) -> Response:
    """Whether the full report is there."""
    return site.page("made.html", request, **_made(request))


def report_file(site: Site, request: Request) -> Response:
    """The full report."""
    making = request.app.state.reports.current
    if making is None or not (making.folder / PAGE).is_file():
        raise RunFolderError("no report was made yet; choose Make the full report")
    return FileResponse(
        making.folder / PAGE, media_type="text/html", headers={"content-security-policy": PAGE_POLICY}
    )  # fmt: skip


def _made(request: Request) -> dict[str, Any]:
    return {"making": request.app.state.reports.current, "query": dict(request.query_params)}


def paths_of(runs: Sequence[RunInfo]) -> list[Path]:
    """The run folders and results files of these runs, each once."""
    return list(dict.fromkeys(run.path for run in runs))


def _is_selected(run: Run, names: set[str], site: Site) -> bool:
    """Whether a run was chosen: results files are read whole."""
    return bool(run.config) or any(name.endswith(run.name.rpartition("/")[2]) for name in names)


def _notes(runs: Sequence[RunInfo], study: Study, claims: Sequence[Claim]) -> list[str]:
    """What the claims leave out, a sentence each."""
    notes = []
    unfinished = sum(run.status != "finished" for run in runs)
    if unfinished:
        notes.append(f"{unfinished} of the {counted(len(runs), 'run')} are not finished; no claim counts them.")
    compared = {claim.base.name for claim in claims}
    alone = [family.name for family in study.families if family.name not in compared]
    if alone:
        notes.append(f"{', '.join(alone)}: no environment has finished runs with OPR and without it.")
    return notes


# -- claims


def claims_of(family: Family) -> list[Claim]:
    """OPR against the method without it, on each environment of a family."""
    by_env: dict[str, list[tuple[str, list[Run]]]] = {}
    for env, name, runs in family.compared():
        by_env.setdefault(env, []).append((name, runs))
    claims = []
    for env, methods in by_env.items():
        bases = [(name, runs) for name, runs in methods if "OPR" not in name]
        for name, runs in methods:
            base = next((b for b in bases if "OPR" in name and _alike(b[1][0], runs[0])), None)
            if base is not None:
                claims += _goal_claim(family, env, base, (name, runs))
                claims.append(_return_claim(family, env, base, (name, runs)))
    return claims


def _return_claim(family: Family, env: str, base: tuple[str, list[Run]], other: tuple[str, list[Run]]) -> Claim:
    values = [[run.scores[family.statistic].value for run in runs] for _, runs in (base, other)]
    counts = [len(part) for part in values]
    if min(counts) >= 2:
        interval = difference_interval(values[1], values[0])
        value, low, high = interval.mean, interval.mean - interval.half_width, interval.mean + interval.half_width
    else:
        value, low, high = sum(values[1]) / counts[1] - sum(values[0]) / counts[0], -math.inf, math.inf
    names = [family.brief(env, name) for name, _ in (base, other)]
    return Claim(
        f"{names[1]} scores more than {names[0]} on {env}",
        f"{short_steps(other[1][0].budget)} steps. A dot is a seed, a bar the mean.",
        family, *judged(low, high, counts), f"{counts[0]} + {counts[1]} seeds", value, low, high,
        _dots(names, values, (value, low, high)), [run.name for _, runs in (base, other) for run in runs],
        f"Difference of the means of {family.statistic} ({STATISTICS[family.statistic]}), Welch’s interval over seeds.",
    )  # fmt: skip


def _goal_claim(family: Family, env: str, base: tuple[str, list[Run]], other: tuple[str, list[Run]]) -> list[Claim]:
    """Whether a goal is kept once it was seen, where an environment has one."""
    if not all("goal_seen" in run.summary for _, runs in (base, other) for run in runs):
        return []
    seen = [[run for run in runs if run.summary["goal_seen"]] for _, runs in (base, other)]
    kept = [sum(bool(run.summary.get("solved")) for run in part) for part in seen]
    counts = [len(part) for part in seen]
    if min(counts) == 0:
        return []
    shares = [k / n for k, n in zip(kept, counts, strict=True)]
    bounds = [wilson_interval(k, n) for k, n in zip(kept, counts, strict=True)]
    value = shares[1] - shares[0]
    low = value - math.hypot(shares[1] - bounds[1][0], bounds[0][1] - shares[0])  # Newcombe's interval
    high = value + math.hypot(bounds[1][1] - shares[1], shares[0] - bounds[0][0])
    names = [family.brief(env, name) for name, _ in (base, other)]
    lead = " · ".join(
        f"{name} kept it in {k} of {n} runs that saw it" for name, k, n in zip(names, kept, counts, strict=True)
    )
    claim = Claim(
        f"{names[1]} keeps the goal of {env} more often than {names[0]}", f"{lead}.", family,
        *judged(low, high, counts), f"{counts[0]} + {counts[1]} runs that saw it", value, low, high,
        _shares(names, shares, bounds), [run.name for part in seen for run in part],
        "Difference of the shares solved of those that saw the goal, Newcombe’s interval from Wilson’s.",
    )  # fmt: skip
    return [claim]


def judged(low: float, high: float, counts: Sequence[int]) -> tuple[Verdict, str]:
    """The verdict of an interval: it must exclude no difference, with enough seeds."""
    if min(counts) < FEWEST:
        return "open", f"Open: fewer than {FEWEST} seeds"
    if low > 0:
        return "supported", "Supported"
    if high < 0:
        return "contradicted", "Contradicted"
    return "open", "Open: no clear difference"


def _alike(run: Run, other: Run) -> bool:
    return run.sticky == other.sticky and abs(run.budget - other.budget) <= 0.02 * max(run.budget, other.budget)


# -- figures


def _left(names: Sequence[str]) -> float:
    """Room for the names of the methods."""
    return min(26 + 7.0 * max(map(len, names)), WIDTH * 0.45)


def _axis(values: Sequence[float], left: float) -> tuple[Any, list[tuple[float, str]]]:
    """Value → x, and the ticks."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite), max(finite)
    room = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    low, high = low - room, high + room

    def place(value: float) -> float:
        return round(left + (min(max(value, low), high) - low) / (high - low) * (WIDTH - left - RIGHT), 1)

    return place, [(place(tick), axis_text(tick)) for tick in ticks(low, high, 4)]


def _dots(names: Sequence[str], values: Sequence[Sequence[float]], difference: Sequence[float]) -> dict[str, Any]:
    left = _left(names)
    place, marks = _axis([value for part in values for value in part], left)
    rows = [
        {"name": name, "color": color, "dots": [(place(v), 5 * ((i * 7) % 5 - 2) / 2) for i, v in enumerate(part)],
         "middle": place(sum(part) / len(part)),
         "ci": tuple(map(place, _bounds(part))) if len(part) > 1 else None}
        for color, (name, part) in enumerate(zip(names, values, strict=True))
    ]  # fmt: skip
    below, below_marks = _axis([0.0, *difference], left)
    known = math.isfinite(difference[1])
    return {
        "kind": "dots", "rows": rows, "marks": marks, "zero": below(0.0), "value": below(difference[0]),
        "ci": (below(difference[1]), below(difference[2])) if known else None, "below_marks": below_marks,
        "width": WIDTH, "left": left,
    }  # fmt: skip


def _shares(names: Sequence[str], shares: Sequence[float], bounds: Sequence[tuple[float, float]]) -> dict[str, Any]:
    left = _left(names)

    def place(value: float) -> float:
        return round(left + value * (WIDTH - left - RIGHT), 1)

    rows = [
        {"name": name, "color": color, "dots": [], "middle": place(share), "ci": (place(low), place(high))}
        for color, (name, share, (low, high)) in enumerate(zip(names, shares, bounds, strict=True))
    ]  # fmt: skip
    marks = [(place(tick), axis_text(tick)) for tick in (0.0, 0.25, 0.5, 0.75, 1.0)]
    return {"kind": "shares", "rows": rows, "marks": marks, "width": WIDTH, "left": left}


def _bounds(values: Sequence[float]) -> tuple[float, float]:
    interval = mean_interval(values)
    return interval.mean - interval.half_width, interval.mean + interval.half_width


def interval_text(claim: Claim) -> str:
    """`+0.21 to +0.85`, or that there is none."""
    if not math.isfinite(claim.low):
        return "needs 2 seeds each"
    return f"{figure_text(claim.low, signed=True)} to {figure_text(claim.high, signed=True)}"
