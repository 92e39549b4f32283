"""CAGE Challenge 2: the strongest defender; one policy for all attackers, trained on what the challenge scores."""

from __future__ import annotations

from typing import Annotated

from optimist.config import EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.presets.cage2 import Rules
from optimist.presets.grids import NO_OPR
from optimist.presets.registry import preset

Red = Annotated[str, "Attacker: mixed (half B_line, half Meander; they show within three steps), B_line or Meander."]
Games = Annotated[int, "Games side by side; an update plays each of them to its end."]

HORIZON = 100
TRUTH = 253  # entries of the observation with the true state, for the critic


@preset("cage2/best")
def best(rules: Rules = "competition", red: Red = "mixed", games: Games = 2048) -> RunConfig:
    """The strongest defender: memory, useful actions, masks, a critic that sees the truth; not told its attacker."""
    return RunConfig(
        total_steps=68_000_000,  # 332 updates; 4 minutes on an H200, four such runs side by side
        matmul_precision="high",
        env=EnvConfig(
            id="optimist/CAGE2Expert-v0",
            num_envs=games,
            kwargs={"red": red, "rules": rules, "horizon": HORIZON, "scored_at": [30, 50, 100]},
            truncation="end",
            group_key="red",
        ),
        network=NetworkConfig(hidden=(256, 128), activation="relu", privileged=TRUTH, action_mask=True),
        algorithm=PPOConfig(
            rollout_steps=HORIZON,
            epochs=3,
            minibatch_size=max(3_200, 5 * games),
            learning_rate=1e-3,
            learning_rate_schedule="linear",
            gamma=0.999,
            gae_lambda=0.95,
            entropy_coef=0.06,
            entropy_coef_final=0.0005,
        ),
        opr=NO_OPR,
        checkpoint_every=10_000_000,
        tensorboard=False,
    )
