"""DeepSea: N rows to descend, one path to the treasure, a small cost on the way: is what was found kept?"""

from __future__ import annotations

from typing import Annotated

from optimist.anchors.config import SILConfig
from optimist.config import AlgorithmConfig, EnvConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.presets import grids
from optimist.presets.registry import preset

Size = Annotated[int, "N. Rows and columns of the grid; chance finds the treasure with probability 2^−N."]


@preset("deepsea/ppo")
def ppo(size: Size = 12) -> RunConfig:
    """PPO on DeepSea: sees the treasure now and then, and forgets it."""
    return _config(size, grids.PPO, grids.NO_OPR)


@preset("deepsea/opr")
def opr(size: Size = 12) -> RunConfig:
    """PPO with OPR, our default, on DeepSea: keeps what it saw."""
    return _config(size, grids.PPO, OPRConfig())


@preset("deepsea/opr-paper")
def opr_paper(size: Size = 12) -> RunConfig:
    """PPO with OPR as the paper has it, on DeepSea; memory of 5,000 transitions."""
    return _config(size, grids.PPO, grids.literal_opr())


@preset("deepsea/a2c")
def a2c(size: Size = 12) -> RunConfig:
    """A2C on DeepSea."""
    return _config(size, grids.A2C, grids.NO_OPR)


@preset("deepsea/a2c-opr")
def a2c_opr(size: Size = 12) -> RunConfig:
    """A2C with OPR, our default, on DeepSea."""
    return _config(size, grids.A2C, OPRConfig())


def _config(size: int, algorithm: AlgorithmConfig, opr: OPRConfig, sil: SILConfig = grids.NO_SIL) -> RunConfig:
    env = EnvConfig(id="optimist/DeepSea-v0", num_envs=16, kwargs={"size": size})
    return grids.grid_config(env, algorithm, opr, sil)


def _register(method: grids.Method) -> None:
    def build(size: Size = 12) -> RunConfig:
        return _config(size, method.algorithm, method.opr, method.sil)

    build.__doc__ = f"{method.text}, on DeepSea."
    preset(f"deepsea/{method.name}")(build)


for _method in grids.METHODS:
    _register(_method)
