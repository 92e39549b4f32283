"""A resumed run equals one that was never stopped: for every setting of OPR that has state, and any two of them."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from typing import Any

import pytest
import torch

from optimist.core.advantages import gae
from optimist.core.anchor import anchor_loss
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.core.steps import Batch, Steps
from optimist.tracking.nested import pack, unpack
from tests.core.tables import TablePolicy

SETTINGS: dict[str, list[dict[str, Any]]] = {
    "reference": [{"reference": word, "shaping_scale": 0.5} for word in ("recorded", "cloned")],
    "sampling": [{"sampling": word} for word in ("uniform", "prioritized", "advantage")],
    "retention": [{"retention": "fifo"}, {"retention": "ranked"}, {"retention": "ranked", "max_age_updates": 2}],
    "augment": [
        {"augment_share": 0.0},
        *[{"augment_share": 0.5, "augment_rows": rows} for rows in ("decoupled", "recorded", "full")],
    ],
    "phase": [
        {"bc_phase_interval": 0},
        *[{"bc_phase_interval": n, "bc_phase_unit": u} for n, u in ((2, "updates"), (7, "episodes"), (50, "steps"))],
    ],
}
OTHERS: list[dict[str, Any]] = [
    {"admission": "paper"},
    {"bc_weights": "uniform"},
    {"bc_luck": 0.5},
    {"bc_luck": "tail"},
    {"bc_trust": 0.1},
    {"bc_batch_size": 0.5},
    {"max_episode_steps": 3},
]
SMALL = {"capacity_transitions": 40, "capacity_episodes": 8, "return_window": 10, "bc_batch_size": 8}


class Host:
    """A small policy-gradient learner on random steps that depend on the number of the update alone."""

    def __init__(self, config: OPRConfig, stack: int = 1) -> None:
        self.policy, self.stack = TablePolicy(seed=1), stack
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=0.01)
        self.opr = OptimisticRegularizer(config, seed=7, frame_stack=stack)
        self.updates, self.trace = 0, list[float]()

    def steps(self) -> Steps:
        generator = torch.Generator().manual_seed(1000 + self.updates)
        shape = (9, 2)
        dones, raw = torch.rand(shape, generator=generator) < 0.3, torch.randn(shape, generator=generator)
        return Steps(
            obs=torch.randint(6, shape, generator=generator),
            actions=torch.randint(3, shape, generator=generator),
            rewards=raw.sign(),
            logp=-torch.rand(shape, generator=generator) * 2,
            dones=dones | (torch.rand(shape, generator=generator) < 0.1),
            raw_rewards=raw,
            episode_ends=dones,
            groups=torch.tensor([[0, 1]]).expand(shape),
        )

    def update(self) -> None:
        steps = self.steps()
        self.updates += 1
        self.opr.observe(steps)
        rewards = self.opr.shape(steps, self.policy)
        values = self.policy.value(steps.obs).detach()
        advantages, returns = gae(rewards, values, values.roll(-1, 0), steps.dones, 0.9, 0.9)
        columns = (steps.obs, steps.actions, steps.logp, advantages, returns, values)
        names = ("obs", "actions", "logp_old", "advantages", "returns", "values_old")
        batch = Batch(**{name: column.flatten() for name, column in zip(names, columns, strict=True)})
        shuffle = torch.Generator().manual_seed(self.updates)
        replayed = self.opr.replay(batch, self.policy)
        for minibatch in batch.minibatches(1, 9, shuffle):
            (good,) = self.opr.sample([4], self.policy)
            minibatch = minibatch if replayed is None else self.opr.join(minibatch, replayed)
            ratio = (self.policy.log_prob(minibatch.obs, minibatch.actions) - minibatch.logp_old).exp()
            weights = 1.0 if minibatch.weights is None else minibatch.weights
            errors = (self.policy.value(minibatch.obs) - minibatch.returns).square()
            loss = -(weights * ratio * minibatch.advantages).mean() + errors.mean()
            self.step(loss + anchor_loss(self.opr, self.policy, good))
        self.opr.after_update(self.policy, self.step)
        self.trace += self.opr.metrics().values()

    def step(self, loss: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.trace.append(loss.item())

    def saved(self) -> Host:
        """A new host, restored from what a checkpoint of this one holds."""
        other = Host(self.opr.config)
        state = {"policy": self.policy.state_dict(), "optimizer": self.optimizer.state_dict()}
        state = unpack(copy.deepcopy(pack(state | {"opr": self.opr.state_dict()})))
        other.policy.load_state_dict(state["policy"])
        other.optimizer.load_state_dict(state["optimizer"])
        other.opr.load_state_dict(state["opr"], other.policy)
        other.updates, other.trace = self.updates, list(self.trace)
        return other


def assert_resumes_exactly(settings: dict[str, Any], moments: tuple[int, ...] = (0, 1, 4), total: int = 12) -> None:
    whole = Host(OPRConfig(**(SMALL | settings)))
    stopped = Host(whole.opr.config)
    for update in range(total):
        if update in moments:
            stopped = stopped.saved()
        whole.update()
        stopped.update()
    assert [repr(x) for x in stopped.trace] == [repr(x) for x in whole.trace]
    assert stopped.policy.logits.equal(whole.policy.logits)
    assert stopped.policy.values.equal(whole.policy.values)
    assert whole.opr.memory.episodes


def covering() -> list[tuple[int, ...]]:
    """Choices, one of each group, such that any two settings of different groups occur together."""
    sizes = [len(group) for group in SETTINGS.values()]
    everything = list(itertools.product(*map(range, sizes)))
    missing = set().union(*map(pairs, everything))
    chosen = []
    while missing:
        chosen.append(max(everything, key=lambda choice: len(pairs(choice) & missing)))
        missing -= pairs(chosen[-1])
    return chosen


def pairs(choice: tuple[int, ...]) -> set[Any]:
    return set(itertools.combinations(enumerate(choice), 2))


@pytest.mark.parametrize("choice", covering(), ids=str)
def test_any_two_settings_with_state_resume_exactly(choice):
    settings: dict[str, Any] = {}
    for group, place in zip(SETTINGS.values(), choice, strict=True):
        settings |= group[place]
    assert_resumes_exactly(settings, moments=(1, 3), total=5)


@pytest.mark.parametrize("settings", OTHERS, ids=str)
def test_other_settings_resume_exactly(settings):
    assert_resumes_exactly(settings)


def test_every_setting_is_covered():
    covered = {name for group in SETTINGS.values() for settings in group for name in settings}
    covered |= {name for settings in OTHERS for name in settings} | set(SMALL)
    numbers = {"enabled", "percentile", "shaping_bound", "bc_coef", "bc_phase_epochs"}
    assert covered | numbers == {f.name for f in dataclasses.fields(OPRConfig)}
