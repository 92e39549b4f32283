import dataclasses

import pytest
import torch

from optimist.anchors.chain import AnchorChain
from optimist.anchors.config import SILConfig
from optimist.anchors.self_imitation import SelfImitation
from optimist.config import EnvConfig, RunConfig
from optimist.core.anchor import Anchor, NoAnchor
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError
from optimist.training.build import make_anchor
from tests.algorithms.tasks import TableActorCritic, random_rollout
from tests.core.tables import TablePolicy, make_steps

CONFIG = RunConfig(env=EnvConfig(id="optimist/DeepSea-v0", num_envs=2, kwargs={"size": 4}))
SIL = SILConfig(enabled=True, start_transitions=1, batch_size=8)


class Adds(NoAnchor):
    """An anchor whose every effect can be counted."""

    def __init__(self, number: float) -> None:
        self.number, self.observed, self.calls = number, [], 0

    def observe(self, steps):
        self.observed.append(steps)

    def shape(self, steps, policy):
        return steps.rewards * self.number

    def loss(self, policy, good=None):
        return torch.tensor(self.number)

    def after_update(self, policy, step):
        step(torch.tensor(self.number))

    def metrics(self):
        return {f"opr/{self.number}": self.number}


def test_stations_pass_through_all_anchors_in_their_order():
    two, three = Adds(2.0), Adds(3.0)
    chain = AnchorChain({"two": two, "three": three})
    assert isinstance(chain, Anchor)
    steps, policy, stepped = make_steps([[1.0, -1.0]], [[0, 0]]), TablePolicy(), []
    chain.observe(steps)
    assert two.observed[0] is three.observed[0] is steps
    assert chain.shape(steps, policy).tolist() == [[6.0, -6.0]]
    assert chain.loss(policy).item() == 5.0
    chain.after_update(policy, lambda loss: stepped.append(loss.item()))
    assert stepped == [2.0, 3.0]
    assert chain.metrics() == {"opr/2.0": 2.0, "opr/3.0": 3.0}


def test_the_config_composes_opr_and_sil():
    both = make_anchor(dataclasses.replace(CONFIG, opr=OPRConfig(), sil=SIL))
    assert isinstance(both, AnchorChain)
    assert list(both.anchors) == ["opr", "sil"]
    assert isinstance(make_anchor(dataclasses.replace(CONFIG, sil=SIL)), SelfImitation)
    assert isinstance(make_anchor(dataclasses.replace(CONFIG, opr=OPRConfig())), OptimisticRegularizer)
    assert isinstance(make_anchor(CONFIG), NoAnchor)
    opr, sil = both.anchors["opr"], both.anchors["sil"]
    assert opr.generator.initial_seed() != sil.generator.initial_seed()


def test_each_part_of_a_chain_does_what_it_does_alone():
    opr_config = OPRConfig(bc_batch_size=8, augment_share=0.5)
    chain = make_anchor(dataclasses.replace(CONFIG, opr=opr_config, sil=SIL))
    alone = make_anchor(dataclasses.replace(CONFIG, opr=opr_config))
    policy, losses = TableActorCritic(), []
    for seed in range(3):
        rollout = random_rollout(seed)
        for anchor in (chain, alone):
            anchor.observe(rollout)
            assert anchor.shape(rollout, policy).equal(rollout.rewards)
    batch = rollout.flatten(rollout.rewards, rollout.rewards)
    joined = [next(iter(a.augment(batch, policy).minibatches(1, 999, torch.Generator()))) for a in (chain, alone)]
    assert joined[0].obs.equal(joined[1].obs)
    assert chain.loss(policy, joined[0].good).item() == alone.loss(policy, joined[1].good).item() != 0.0
    chain.after_update(policy, losses.append)
    assert len(losses) == SIL.updates
    assert {"opr/memory_episodes", "sil/stored", "loss/sil"} <= set(chain.metrics())


def test_two_anchors_that_join_minibatches_are_refused():
    parts = {name: make_anchor(dataclasses.replace(CONFIG, opr=OPRConfig(bc_batch_size=8))) for name in ("one", "two")}
    chain, policy, rollout = AnchorChain(parts), TableActorCritic(), random_rollout(0)
    chain.observe(rollout)
    with pytest.raises(ConfigError, match="one and two both have rows join"):
        chain.augment(rollout.flatten(rollout.rewards, rollout.rewards), policy)


def test_a_chain_of_one_is_refused():
    with pytest.raises(ConfigError, match="at least two anchors"):
        AnchorChain({"opr": NoAnchor()})
