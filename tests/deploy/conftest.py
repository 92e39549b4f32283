"""Small CAGE-2 runs, one per interface, trained once."""

from dataclasses import replace

import pytest

from optimist.presets import get_preset
from optimist.training.trainer import train

GAMES = 16
SMALL = {
    "b_line": ("cage2/cardiff", {"red": "B_line"}),
    "meander": ("cage2/cardiff-opr", {"red": "Meander"}),
    "meander_tanh": ("cage2/cardiff-opr", {"red": "Meander"}),
    "mixed": ("cage2/cardiff-opr", {"red": "mixed", "rules": "competition"}),
    "sleepy": ("cage2/cardiff-opr", {"red": "mixed"}),
    "plain": ("cage2/ppo", {"red": "Meander"}),
    "plain_normalized": ("cage2/ppo", {"red": "Meander"}),
    "expert": ("cage2/best", {"games": GAMES}),
    "expert_unmasked": ("cage2/best", {"games": GAMES}),
    "expert_mask_not_obeyed": ("cage2/best", {"games": GAMES}),
}


def small(name, **changes):
    """The preset with few games and two updates."""
    preset, parameters = SMALL[name]
    config = get_preset(preset)(**parameters)
    if name == "meander_tanh":
        config = replace(config, network=replace(config.network, hidden=(32, 16, 48), activation="tanh"))
    if name == "sleepy":
        config = replace(config, env=replace(config.env, kwargs={**config.env.kwargs, "sleep_output": True}))
    if name == "plain_normalized":
        config = replace(config, network=replace(config.network, normalize_observations=True))
    if name in ("expert_unmasked", "expert_mask_not_obeyed"):  # whose actions vary without training
        network = replace(config.network, initialization="default", action_mask=name != "expert_mask_not_obeyed")
        env = replace(config.env, kwargs={**config.env.kwargs, "mask": name != "expert_unmasked"})
        config = replace(config, env=env, network=network, algorithm=replace(config.algorithm, learning_rate=1e-9))
    steps = 2 * GAMES * config.algorithm.rollout_steps
    return replace(
        config, env=replace(config.env, num_envs=GAMES), total_steps=steps, tensorboard=False, seed=len(name), **changes
    )


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name in SMALL:
        train(small(name), folder / name, progress=False)
    return {name: str(folder / name) for name in SMALL}
