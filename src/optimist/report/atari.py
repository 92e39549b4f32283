"""Atari's part of a report: our scores next to published ones, aggregates over games, and what others published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from optimist.report import atari_charts
from optimist.report.atari_charts import REPS, STATISTICS, TOO_FEW, Normalized
from optimist.report.charts import Chart, Key
from optimist.report.comparison import mean_cell, steps_range
from optimist.report.formatting import counted, readable
from optimist.report.page import Details, Part
from optimist.report.published import (
    FIFTY,
    TABLE_1,
    TABLE_2,
    TEN,
    PublishedColumn,
    published_column,
    reference_scores,
    table_games,
)
from optimist.report.runs import Run
from optimist.report.study import Family
from optimist.report.tables import Cell, Head, Table
from optimist.stats import aggregate as stats

FEWEST_GAMES = 5
"""Games that a column needs for aggregates, profiles and counts: an interquartile mean of three excludes none."""
OURS = "measured here"
PUBLISHED = (
    "Published: as printed, bold as in the paper; letters mark doubts, listed below. The OPR paper states neither runs "
    "nor statistic nor sticky actions."
)


def atari_parts(family: Family, *, published: bool) -> Iterator[Part]:
    """The paper's two tables, each with its aggregates; `published` opens the scores of games that were not run."""
    for paper in paper_tables(family):
        across = list(paper.across_games())
        table, rest = paper.measured_table(), paper.published_table()
        if table is not None:
            yield table
        yield from paper.left_out(paper.compared if across else ())
        yield from across
        if rest is not None:
            yield Details(rest.title, [rest] if across else [rest, paper.counts(())], open=published)


def paper_tables(family: Family) -> tuple[PaperTable, PaperTable]:
    """The OPR paper's tables of 10M and of 50M steps; to our aggregates join CleanRL's PPO and the paper's SIL, OPR."""
    return (
        PaperTable(family, 1, "10M", TEN, TABLE_1, aggregated=(0, 6, 7), long=False),
        PaperTable(family, 2, "50M", FIFTY, TABLE_2, aggregated=range(len(TABLE_2)), long=True),
    )


@dataclass(frozen=True)
class PaperTable:
    """One of the OPR paper's two tables, with our columns of its budget."""

    family: Family
    number: int
    budget: str
    block: str
    columns: Sequence[tuple[str, str]]
    aggregated: Sequence[int]
    """The published columns that join our aggregates."""
    long: bool

    @cached_property
    def games(self) -> list[str]:
        """The paper's games, in its order."""
        return table_games(self.block)

    @cached_property
    def published(self) -> list[PublishedColumn]:
        """The published columns."""
        return [published_column(*column) for column in self.columns]

    @cached_property
    def ours(self) -> dict[str, list[Run]]:
        """Our columns."""
        return self.family.columns(long=self.long)

    @cached_property
    def scores(self) -> dict[str, dict[str, list[float]]]:
        """Our column → game → its scores."""
        found: dict[str, dict[str, list[float]]] = {name: {} for name in self.ours}
        for name, runs in self.ours.items():
            for run in runs:
                found[name].setdefault(run.env, []).append(run.scores[self.family.statistic].value)
        return found

    @property
    def compared(self) -> list[str]:
        """Our columns with enough games for aggregates."""
        return [name for name, games in self.scores.items() if len(games) >= FEWEST_GAMES]

    def measured_table(self) -> Table | None:
        """Those of the paper's 49 games (10M steps) or 14 (50M) that were run: our columns, then the published ones."""
        games = [game for game in self.games if any(game in column for column in self.scores.values())]
        if not games:
            return None
        heads = [Head(name, self._fine_print(runs), OURS) for name, runs in self.ours.items()]
        columns = self.scores.values()
        rows = {game: _mark_highest([mean_cell(column.get(game, [])) for column in columns]) for game in games}
        every = len(self.games)
        which = f"{every} games" if len(games) == every else f"{len(games)} of {every} games"
        return self._with_published(f"{every}-games", which, heads, rows, self._caption())

    def published_table(self) -> Table | None:
        """The published scores of the games that were not run here; None if there are none."""
        games = [game for game in self.games if not any(game in column for column in self.scores.values())]
        if not games:
            return None
        which = f"published scores of {counted(len(games), 'game')} not run here"
        return self._with_published("published", which, [], {game: [] for game in games}, "")

    def across_games(self) -> Iterator[Part]:
        """Counts, aggregates, profiles, improvement and efficiency; nothing if too few games are shared."""
        joined = [self.published[at] for at in self.aggregated]
        keys: dict[str, Key] = {}
        for name in self.compared:
            keys[name] = self.family.keys[self.family.labels[id(self.ours[name][0])]]
        scores = {name: self.scores[name] for name in self.compared}
        found, games = atari_charts.normalized(scores, joined, keys)
        if len(games) < FEWEST_GAMES:
            return
        yield self.counts(self.compared)
        yield aggregate_table(found, games, f"aggregates-{self.budget}")
        yield atari_charts.aggregates(found, games, f"aggregates-{self.budget}")
        yield atari_charts.profiles(found, games, f"profiles-{self.budget}")
        runs = {name: self.ours[name] for name in self.compared}
        more = (
            atari_charts.improvement(found, games, f"improvement-{self.budget}"),
            atari_charts.efficiency(runs, keys, games, f"efficiency-{self.budget}"),
        )
        yield from (chart for chart in more if chart is not None)

    def counts(self, names: Sequence[str]) -> Chart:
        """The chart of highest scores, with these of our columns."""
        printed = {column.method: column.scores for column in self.published if column.block == self.block}
        means = {
            name: {game: sum(values) / len(values) for game, values in self.scores[name].items()} for name in names
        }
        title = f"Highest scores, {self.budget} steps"
        return atari_charts.counts(means, printed, self.games, name=f"highest-{self.budget}", title=title)

    def left_out(self, compared: Sequence[str]) -> Iterator[str]:
        """A paragraph that names the columns without aggregates, if there are any."""
        sizes = {name: len(games) for name, games in self.scores.items() if name not in compared}
        if sizes:
            left = "; ".join(f"{name} ({counted(size, 'game')})" for name, size in sizes.items())
            yield (
                f"Not in aggregates, profiles and counts of highest scores: {left}. These compare the games that all "
                f"methods finished; with fewer than {FEWEST_GAMES} games they add nothing to the scores themselves."
            )

    def _with_published(
        self, name: str, which: str, heads: Sequence[Head], cells: Mapping[str, Sequence[Cell]], caption: str
    ) -> Table:
        """Rows of games: our cells, then the published ones, with their doubts and sources below."""
        reference, published = reference_scores(), self.published
        bold: Mapping[str, Sequence[str]] = reference["scores"][self.block]["bold"]
        rows = [
            [Cell(game), *ours, *(self._published_cell(column, game, bold.get(game, ())) for column in published)]
            for game, ours in cells.items()
        ]
        used = sorted({mark for row in rows for cell in row for mark in cell.marks})
        sources = dict.fromkeys(f"{column.terms.name}, {column.url}" for column in published)
        marks = (f"{mark}: {reference['doubts'][mark]}" for mark in used)
        notes = [*marks, *reference["notes"], f"Sources: {'; '.join(sources)}."]
        title = f"Table {self.number}: {which}, {self.budget} steps."
        all_heads = [Head("game", numeric=False), *heads, *map(self._published_head, published)]
        name = f"table-{self.number}-{name}-{self.budget}"
        return Table(name, title, all_heads, rows, f"{caption} {PUBLISHED}".strip(), notes)

    def _published_cell(self, column: PublishedColumn, game: str, bold: Sequence[str]) -> Cell:
        value = column.scores.get(game)
        if value is None:
            return Cell()
        strong = column.block == self.block and column.method in bold
        digits = 1 if abs(value) < 100_000 else 0
        return Cell(value=value, marks=column.doubts.get(game, ""), strong=strong, digits=digits)

    def _published_head(self, column: PublishedColumn) -> Head:
        """The terms that the paper's columns share are in the caption."""
        if column.block == self.block:
            return Head(column.method, "", "the OPR paper", url=column.url)
        return Head(column.label, column.fine_print, "published elsewhere", url=column.url)

    def _fine_print(self, runs: Sequence[Run]) -> str:
        sticky = " / ".join(sorted({readable(run.sticky) for run in runs}))
        return f"{steps_range(runs)} steps, {self.family.statistic}, sticky {sticky}"

    def _caption(self) -> str:
        statistic, enough = self.family.statistic, 49e6 if self.long else 9.8e6
        words = [f"Ours: {statistic}, mean over seeds ± 95 % (Student), bold: the highest of ours."]
        short = [name for name, runs in self.ours.items() if any(run.budget < enough for run in runs)]
        if short:
            words.append(f"Smaller budget than the table's: {'; '.join(short)} (see the column's header).")
        few = sum((run.scores[statistic].episodes or 100) < 100 for runs in self.ours.values() for run in runs)
        if few and statistic == "last-100":
            words.append(f"{counted(few, 'run')} finished fewer than 100 training episodes; the mean is over those.")
        return " ".join(words)


def aggregate_table(columns: Sequence[Normalized], games: Sequence[str], name: str) -> Table:
    """The numbers of the chart of aggregates."""
    rows = []
    for column in columns:
        cells = [Cell(column.name), Cell(OURS if column.ours else "published")]
        for statistic in STATISTICS.values():
            if column.ours:
                value, low, high = stats.bootstrap(column.scores, statistic, reps=REPS)
                bounds = "" if np.isnan(low) else f" ({low:.3f} to {high:.3f})"
                text = f"{value:z.3f}{bounds}".replace("-", "−")
                cells.append(Cell(text, parts={"": float(value), "low_95": float(low), "high_95": float(high)}))
            else:
                cells.append(Cell(value=float(statistic(column.scores)), digits=3))
        rows.append(cells)
    heads = [Head("column", numeric=False), Head("", numeric=False), *(Head(title) for title in STATISTICS)]
    which = f": {', '.join(games)}" if len(games) <= 12 else ""
    caption = (
        f"Human-normalised scores on the {counted(len(games), 'game')} that all columns have{which}. "
        f"In parentheses: 95 % intervals of the stratified bootstrap; {TOO_FEW}."
    )
    return Table(name, "Aggregates.", heads, rows, caption)


def _mark_highest(cells: Sequence[Cell]) -> list[Cell]:
    """The highest of our means in bold, if there are several."""
    values = [cell.value for cell in cells if cell.value is not None]
    if len(values) < 2:
        return list(cells)
    return [replace(cell, strong=cell.value == max(values)) for cell in cells]
