"""Atari's section: the games that were run beside published scores, what many games say, and the rest folded up."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence

from optimist.report import atari_charts, score_tables
from optimist.report.charts import Chart
from optimist.report.identify import ATARI
from optimist.report.page import paragraph
from optimist.report.published import TABLE_1, TABLE_2, published_column, table_games
from optimist.report.runs import Run
from optimist.report.scores import counted
from optimist.report.study import Study
from optimist.report.tables import Table

AGGREGATED = (0, 6, 7)
"""Of the published columns of table 1, those beside our aggregates: CleanRL's PPO, and the paper's SIL and OPR."""
FEWEST_GAMES = 5
"""Of a column in aggregates, profiles and counts. An interquartile mean of three numbers leaves none of them out."""


def atari_parts(study: Study, *, published: bool) -> Iterator[Table | Chart | str]:
    """The paper's two tables with what belongs to each; with `published` the scores of games nobody ran stand open."""
    for long in (False, True):
        ours = study.columns(ATARI, long=long)
        compared = {name: runs for name, runs in ours.items() if len(_game_means(study, runs)) >= FEWEST_GAMES}
        across = list(_across_games(study, compared, long=long))
        table, rest = score_tables.paper_table(study, long=long), score_tables.published_table(study, long=long)
        if table is not None:
            yield table
        if ours:
            yield _said_of_few(study, ours, compared if across else {})
        yield from across
        if rest is not None:
            yield f"<details{' open' if published else ''}><summary>{html.escape(rest.title)}</summary>"
            yield rest
            yield "" if across else _counts(study, {}, long=long)
            yield "</details>"


def _across_games(study: Study, ours: Mapping[str, Sequence[Run]], *, long: bool) -> Iterator[Table | Chart]:
    """Counts, aggregates, profiles, improvement and efficiency; nothing if too few games are shared."""
    columns = [published_column(*column) for column in (TABLE_2 if long else TABLE_1)]
    beside = columns if long else [columns[at] for at in AGGREGATED]
    keys = {name: study.keys(ATARI)[study.labels(ATARI)[id(runs[0])]] for name, runs in ours.items()}
    found, games = atari_charts.normalized(ours, beside, keys, study.statistic)
    if len(games) < FEWEST_GAMES:
        return
    budget = _budget(long)
    yield _counts(study, ours, long=long)
    yield score_tables.aggregate_table(found, games, f"aggregates-{budget}")
    yield atari_charts.aggregates(found, games, f"aggregates-{budget}")
    yield atari_charts.profiles(found, games, f"profiles-{budget}")
    more = (
        atari_charts.improvement(found, games, f"improvement-{budget}"),
        atari_charts.efficiency(ours, keys, games, f"efficiency-{budget}"),
    )
    yield from (chart for chart in more if chart is not None)


def _counts(study: Study, ours: Mapping[str, Sequence[Run]], *, long: bool) -> Chart:
    block = "opr_table_50M" if long else "opr_table_10M"
    printed = [published_column(*column) for column in (TABLE_2 if long else TABLE_1) if column[0] == block]
    means = {name: _game_means(study, runs) for name, runs in ours.items()}
    budget = _budget(long)
    return atari_charts.counts(
        means, printed, table_games(block), name=f"highest-{budget}", title=f"Highest scores, {budget} steps"
    )


def _said_of_few(study: Study, ours: Mapping[str, Sequence[Run]], compared: Mapping[str, Sequence[Run]]) -> str:
    """Which columns stand in no aggregate, and why; empty if all do."""
    left = [f"{name} ({counted(len(_game_means(study, runs)), 'game')})" for name, runs in ours.items()
            if name not in compared]  # fmt: skip
    if not left:
        return ""
    return paragraph(
        f"Not in aggregates, profiles and counts of highest scores: {'; '.join(left)}. These are over the games that "
        f"all methods have finished, and over fewer than {FEWEST_GAMES} would say no more than the scores themselves."
    )


def _game_means(study: Study, runs: Sequence[Run]) -> dict[str, float]:
    by_game = atari_charts.by_game(runs, study.statistic)
    return {game: sum(values) / len(values) for game, values in by_game.items()}


def _budget(long: bool) -> str:
    return "50M" if long else "10M"
