"""The 49 games of Mnih et al. (2015): names, ROMs, and what a random player and a human score."""

from __future__ import annotations

import re
from typing import NamedTuple

from optimist.errors import unknown_name


class Game(NamedTuple):
    """One game, as papers call it."""

    name: str
    random_score: float
    human_score: float

    @property
    def rom(self) -> str:
        """The name of its ROM: MsPacman → ms_pacman."""
        return rom_name(self.name)

    def human_normalized(self, score: float) -> float:
        """(score − random) / (human − random): 0 plays as a random player does, 1 as a human."""
        return (score - self.random_score) / (self.human_score - self.random_score)


# No-op starts, at most 30 minutes: the table of DQN Zoo (dqn_zoo/atari_data.py, Apache-2.0, commit 359945d), which is
# that of the MuZero and Agent57 papers but for the random score of VideoPinball (0.0 there). The human scores of the
# Nature paper are others.
GAMES = {
    name: Game(name, random_score, human_score)
    for name, random_score, human_score in (
        ("Alien", 227.8, 7127.7),
        ("Amidar", 5.8, 1719.5),
        ("Assault", 222.4, 742.0),
        ("Asterix", 210.0, 8503.3),
        ("Asteroids", 719.1, 47388.7),
        ("Atlantis", 12850.0, 29028.1),
        ("BankHeist", 14.2, 753.1),
        ("BattleZone", 2360.0, 37187.5),
        ("BeamRider", 363.9, 16926.5),
        ("Bowling", 23.1, 160.7),
        ("Boxing", 0.1, 12.1),
        ("Breakout", 1.7, 30.5),
        ("Centipede", 2090.9, 12017.0),
        ("ChopperCommand", 811.0, 7387.8),
        ("CrazyClimber", 10780.5, 35829.4),
        ("DemonAttack", 152.1, 1971.0),
        ("DoubleDunk", -18.6, -16.4),
        ("Enduro", 0.0, 860.5),
        ("FishingDerby", -91.7, -38.7),
        ("Freeway", 0.0, 29.6),
        ("Frostbite", 65.2, 4334.7),
        ("Gopher", 257.6, 2412.5),
        ("Gravitar", 173.0, 3351.4),
        ("Hero", 1027.0, 30826.4),
        ("IceHockey", -11.2, 0.9),
        ("Jamesbond", 29.0, 302.8),
        ("Kangaroo", 52.0, 3035.0),
        ("Krull", 1598.0, 2665.5),
        ("KungFuMaster", 258.5, 22736.3),
        ("MontezumaRevenge", 0.0, 4753.3),
        ("MsPacman", 307.3, 6951.6),
        ("NameThisGame", 2292.3, 8049.0),
        ("Pong", -20.7, 14.6),
        ("PrivateEye", 24.9, 69571.3),
        ("Qbert", 163.9, 13455.0),
        ("Riverraid", 1338.5, 17118.0),
        ("RoadRunner", 11.5, 7845.0),
        ("Robotank", 2.2, 11.9),
        ("Seaquest", 68.4, 42054.7),
        ("SpaceInvaders", 148.0, 1668.7),
        ("StarGunner", 664.0, 10250.0),
        ("Tennis", -23.8, -8.3),
        ("TimePilot", 3568.0, 5229.2),
        ("Tutankham", 11.4, 167.6),
        ("UpNDown", 533.4, 11693.2),
        ("Venture", 0.0, 1187.5),
        ("VideoPinball", 16256.9, 17667.9),
        ("WizardOfWor", 563.5, 4756.5),
        ("Zaxxon", 32.5, 9173.3),
    )
}


def get_game(name: str) -> Game:
    """One of the 49; an unknown name gets a suggestion."""
    if name not in GAMES:
        raise unknown_name("Atari game", name, GAMES)
    return GAMES[name]


def rom_name(name: str) -> str:
    """The name of a game's ROM: MsPacman → ms_pacman, UpNDown → up_n_down."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
