"""Key-Door-Treasure: fetch the key, open the door, reach the treasure; an apple near the start tempts, if asked for."""

from __future__ import annotations

from typing import Annotated

from optimist.anchors.config import SILConfig
from optimist.config import AlgorithmConfig, EnvConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.presets import grids
from optimist.presets.registry import preset

Height = Annotated[int, "H. Rows of the H × 9 grid."]
Apple = Annotated[bool, "Put an apple worth 0.1 near the start."]


@preset("keydoor/ppo")
def ppo(height: Height = 6, apple: Apple = False) -> RunConfig:
    """PPO on Key-Door-Treasure."""
    return _config(height, apple, grids.PPO, grids.NO_OPR)


@preset("keydoor/opr")
def opr(height: Height = 6, apple: Apple = False) -> RunConfig:
    """PPO with OPR, our default, on Key-Door-Treasure."""
    return _config(height, apple, grids.PPO, OPRConfig())


@preset("keydoor/opr-paper")
def opr_paper(height: Height = 6, apple: Apple = False) -> RunConfig:
    """PPO with OPR as the paper has it, on Key-Door-Treasure; memory of 5,000 transitions."""
    return _config(height, apple, grids.PPO, grids.literal_opr())


@preset("keydoor/a2c")
def a2c(height: Height = 6, apple: Apple = False) -> RunConfig:
    """A2C on Key-Door-Treasure."""
    return _config(height, apple, grids.A2C, grids.NO_OPR)


@preset("keydoor/a2c-opr")
def a2c_opr(height: Height = 6, apple: Apple = False) -> RunConfig:
    """A2C with OPR, our default, on Key-Door-Treasure."""
    return _config(height, apple, grids.A2C, OPRConfig())


def _config(
    height: int, apple: bool, algorithm: AlgorithmConfig, opr: OPRConfig, sil: SILConfig = grids.NO_SIL
) -> RunConfig:
    env = EnvConfig(id="optimist/KeyDoorTreasure-v0", num_envs=16, kwargs={"height": height, "apple": apple})
    return grids.grid_config(env, algorithm, opr, sil)


def _register(method: grids.Method) -> None:
    def build(height: Height = 6, apple: Apple = False) -> RunConfig:
        return _config(height, apple, method.algorithm, method.opr, method.sil)

    build.__doc__ = f"{method.text}, on Key-Door-Treasure."
    preset(f"keydoor/{method.name}")(build)


for _method in grids.METHODS:
    _register(_method)
