"""Score: one number with everything it must not lose, and columns that hold scores of one kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from optimist.errors import ConfigError

Statistic = Literal["last-100", "final", "final-greedy", "best-epoch", "not stated"]
Unlike = Literal["refuse", "separate", "mix"]

STATISTICS: dict[Statistic, str] = {
    "last-100": "mean raw return of the last 100 training episodes, sampled actions",
    "final": "mean raw return of the final policy on fresh episodes, sampled actions",
    "final-greedy": "mean raw return of the final policy on fresh episodes, most likely actions",
    "best-epoch": "highest mean of the evaluations during training: a maximum, biased upwards",
    "not stated": "the source does not say",
}
"""What each statistic is; they are not comparable with each other."""
KINDS = {"statistic": "statistics", "sticky": "sticky-action probabilities", "budget": "budgets in steps"}
"""The fields in which the scores of one column agree, and what they are called."""
BUDGET_TOLERANCE = 0.02


@dataclass(frozen=True, kw_only=True)
class Score:
    """What one run (or one published table) reached, and under which terms."""

    value: float
    method: str
    env: str
    statistic: Statistic
    budget: int
    """Environment steps of training; an Atari step is 4 frames."""
    sticky: float | None = None
    """Probability that the console repeats an action; None outside Atari or where a source does not say."""
    seed: int | None = None
    """The run's seed; None where the value is a mean over runs."""
    runs: int | None = 1
    """Runs behind the value; None where a source does not say."""
    spread: float | None = None
    """Standard deviation over those runs, if published."""
    episodes: int | None = None
    """Episodes behind the value."""
    source: str = "measured"
    """The run folder or file, or the address of the publication."""


def same(field: str, value: Any, other: Any) -> bool:
    """Whether two values of a field are of one kind; the rest of a budget that fills no update makes no other one."""
    if field == "budget":
        return bool(abs(value - other) <= BUDGET_TOLERANCE * max(value, other))
    return bool(value == other)


def check_alike(scores: Sequence[Score], *, where: str) -> None:
    """Raises unless the scores agree in statistic, sticky actions and budget; names the first two that do not."""
    for score in scores[1:]:
        for field, plural in KINDS.items():
            first, other = getattr(scores[0], field), getattr(score, field)
            if not same(field, first, other):
                raise ConfigError(
                    f"{where} would mix {plural}: {readable(first)} ({scores[0].source}) and {readable(other)} "
                    f"({score.source}); --unlike separate gives each its own column, --unlike mix averages them"
                )


def columns(scores: Iterable[Score], *, unlike: Unlike = "separate", across: bool = False) -> dict[str, list[Score]]:
    """The scores by column. With `across`, all environments of a column must be alike; without, each for itself.

    `separate` puts what differs behind the method's name; `mix` marks the column with a star; `refuse` raises.
    """
    found: dict[str, list[Score]] = {}
    for score in scores:
        found.setdefault(score.method, []).append(score)
    result: dict[str, list[Score]] = {}
    for method, column in found.items():
        groups = [column] if across else [[s for s in column if s.env == env] for env in _ordered(column, "env")]
        mixed = [field for field in KINDS if any(_differ(field, group) for group in groups)]
        if not mixed or unlike == "mix":
            result[f"{method} *" if mixed else method] = column
        elif unlike == "refuse":
            for group in groups:
                check_alike(group, where=f"the column {method}" + ("" if across else f", {group[0].env},"))
        else:
            for score in column:
                words = ", ".join(_words(field, _first(field, score, column)) for field in mixed)
                result.setdefault(f"{method} ({words})", []).append(score)
    return result


def readable(value: Any) -> str:
    """10,000,000 for a budget; `not stated` for None."""
    if value is None:
        return "not stated"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def counted(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def short_steps(steps: int) -> str:
    """10M, 59.4k: a budget as a column's head has room for."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if steps >= size:
            return f"{steps / size:.3g}{unit}"
    return str(steps)


def short_number(value: float) -> str:
    """Three digits, with a letter for what is large and an exponent for what is small."""
    size = abs(value)
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= unit:
            return f"{value / (1e3 if letter == 'k' else unit):.3g}{letter}".replace("-", "−")
    text = f"{value:,.0f}" if size >= 1000 else f"{value:.1e}" if 0 < size < 0.001 else f"{value:.3g}"
    return text.replace("e-0", "e-").replace("-", "−")


def _differ(field: str, scores: Sequence[Score]) -> bool:
    return any(not same(field, getattr(scores[0], field), getattr(score, field)) for score in scores)


def _first(field: str, score: Score, column: Sequence[Score]) -> Any:
    """The value that stands for the score's kind: the first of the same kind in the column."""
    value = getattr(score, field)
    return next(getattr(s, field) for s in column if same(field, getattr(s, field), value))


def _words(field: str, value: Any) -> str:
    if field == "budget":
        return f"{short_steps(value)} steps"
    return f"sticky {readable(value)}" if field == "sticky" else readable(value)


def _ordered(scores: Iterable[Score], field: str) -> list[str]:
    return list(dict.fromkeys(getattr(score, field) for score in scores))
