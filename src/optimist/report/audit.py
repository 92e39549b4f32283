"""What is doubtful in the OPR paper's tables, cell by cell, found by comparing numbers with each other and others'."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from optimist.report.reference import mean_and_spread, reference_scores

TEN, FIFTY = "opr_table_10M", "opr_table_50M"
ROUND_NUMBERS = (
    "SpaceInvaders", "StarGunner", "TimePilot", "Tutankham", "UpNDown", "VideoPinball", "WizardOfWor", "Zaxxon",
    "RoadRunner", "PrivateEye",
)  # fmt: skip


class Flag(NamedTuple):
    """A doubt about a published cell."""

    mark: str
    meaning: str


FLAGS = {
    "a": Flag("a", "DQN, attributed to Mnih et al. (2015): below half of what that paper reports."),
    "b": Flag("b", "DQN equals the ACPER cell of the same row."),
    "c": Flag("c", "PPO: a round number among the last rows; looks like a placeholder."),
    "d": Flag("d", "PPO, said to be the authors' own run: within 0.5 % of Schulman et al. (2017)."),
    "e": Flag("e", "A2C, said to be the authors' own 10M run: equals the 50M A2C of Oh et al. (2018)."),
    "f": Flag("f", "OPR: identical at 10M and 50M; unknown which of the two it is."),
    "g": Flag("g", "OPR: lower at 50M than at 10M, so neither is a best-so-far score."),
    "h": Flag("h", "Below random play."),
}
NOTES = (
    "The OPR paper says in one place that PPO and A2C are its own 10M runs and in others that all baselines are 50M; "
    "the same baseline numbers stand in both tables.",
    "Every OPR cell that can be checked is a multiple of what a mean of 10 games gives (27 of 27 games); PPO's "
    "are not (14 of 27): OPR is one test of one run, PPO comes from elsewhere.",
    "On aggregate the paper's own SIL column is above its OPR column (IQM of human-normalised scores: 1.61, 1.45). "
    "With DQN as published OPR's 22 highest scores become 20; with CleanRL's PPO in place of the PPO column, 19.",
    "Compare with CleanRL's PPO rather than with the paper's columns for PPO, A2C and DQN.",
)


@cache
def flags(block: str, method: str, game: str) -> str:
    """The marks of a cell of the paper's tables, `ab`; empty for cells without doubt and for other sources."""
    if block not in (TEN, FIFTY) or _cell(block, method, game) is None:
        return ""
    check = {"DQN": _dqn, "PPO": _ppo, "A2C": _a2c, "OPR": _opr}.get(method)
    found = check(block, game) if check else ""
    return found + ("h" if _below_random(block, method, game) else "")


def _dqn(block: str, game: str) -> str:
    value, cited = _known(block, "DQN", game), _cell("nature_dqn_50M", "DQN", game)
    return ("a" if cited is not None and cited > 0 and value < cited / 2 else "") + (
        "b" if value == _cell(block, "ACPER", game) else ""
    )


def _ppo(block: str, game: str) -> str:
    value, cited = _known(block, "PPO", game), _cell("ppo_paper_10M", "PPO", game)
    close = cited is not None and cited != 0 and abs(value - cited) <= 0.005 * abs(cited)
    return ("c" if game in ROUND_NUMBERS else "") + ("d" if close else "")


def _a2c(block: str, game: str) -> str:
    return "e" if _known(block, "A2C", game) == _cell("sil_paper_50M", "A2C", game) else ""


def _opr(block: str, game: str) -> str:
    early, late = _cell(TEN, "OPR", game), _cell(FIFTY, "OPR", game)
    if early is None or late is None:
        return ""
    return "f" if early == late else "g" if late < early else ""


def _below_random(block: str, method: str, game: str) -> bool:
    random: float = reference_scores()["random_human"]["standard"]["random"][game]
    return _known(block, method, game) < random


def _known(block: str, method: str, game: str) -> float:
    value = _cell(block, method, game)
    assert value is not None
    return value


def _cell(block: str, method: str, game: str) -> float | None:
    cell = reference_scores()["scores"][block]["columns"][method].get(game)
    return None if cell is None else mean_and_spread(cell)[0]
