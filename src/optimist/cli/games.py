"""`optimist games`: the 49 Atari games with scores of a random policy and a human; published scores of one game."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.cli.arguments import Parser, print_result


def main(argv: Sequence[str]) -> int:
    """List the games, or the published scores of one."""
    parser = Parser(prog="optimist games", description="List the 49 Atari games, or the published scores of one.")
    parser.add_argument("game", nargs="?", metavar="GAME", help="show the published scores of this game")
    parser.add_argument("--json", action="store_true", help="print one JSON object on one line")
    options = parser.parse_all(list(argv))
    if options.game is None:
        return _list(options.json)
    return _show(options.game, options.json)


def _list(as_json: bool) -> int:
    from optimist.envs.atari.games import GAMES

    if as_json:
        scores = {name: {"random": game.random_score, "human": game.human_score} for name, game in GAMES.items()}
        print_result(scores, as_json=True)
        return 0
    print(f"{'game':<18}{'random':>10}{'human':>10}")
    for game in GAMES.values():
        print(f"{game.name:<18}{game.random_score:>10,.1f}{game.human_score:>10,.1f}")
    print("\noptimist games GAME lists published scores; optimist train atari/smoke --game GAME trains briefly.")
    return 0


def _show(name: str, as_json: bool) -> int:
    from optimist.envs.atari.games import get_game
    from optimist.report.published import published_scores

    game = get_game(name)
    rows = published_scores(name)
    if as_json:
        known = {"game": name, "random": game.random_score, "human": game.human_score}
        print_result(known | {"published": [row._asdict() for row in rows]}, as_json=True)
        return 0
    print(f"{name}: random {game.random_score:,.1f}, human {game.human_score:,.1f}\n")
    print(f"{'published in':<30}{'method':<28}{'score':>12}{'± std':>10}{'human-normalised':>18}")
    for row in rows:
        spread = "" if row.spread is None else f"{row.spread:,.1f}"
        normalized = game.human_normalized(row.mean)
        print(f"{row.block:<30}{row.method:<28}{row.mean:>12,.1f}{spread:>10}{normalized:>18.2f}")
    print("\nBudgets, seeds and sticky actions differ between sources: 10M and 50M are steps (4 frames each).")
    return 0
