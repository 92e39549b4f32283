"""AnchorChain: several anchors as one, of which one may sample rows and one may replay rows."""

import dataclasses

import pytest
import torch

from optimist.anchors.chain import AnchorChain
from optimist.anchors.self_imitation import SelfImitation
from optimist.config import EnvConfig, RunConfig
from optimist.config.sil import SILConfig
from optimist.core.anchor import Anchor, NoAnchor, anchor_loss
from optimist.core.config import OPRConfig
from optimist.core.memory import GoodRows
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError
from optimist.training.build import make_anchor
from tests.algorithms.tasks import TableActorCritic, random_rollout
from tests.core.tables import TablePolicy, make_batch, make_steps

CONFIG = RunConfig(env=EnvConfig(id="optimist/DeepSea-v0", num_envs=2, kwargs={"size": 4}))
SIL = SILConfig(enabled=True, start_transitions=1, batch_size=8)
SIL_RUN = dataclasses.replace(CONFIG, sil=SIL)


class Multiplies(Anchor):
    """An anchor that multiplies rewards by its number and steps on it."""

    def __init__(self, number: float) -> None:
        self.number, self.observed = number, []

    def observe(self, steps):
        self.observed.append(steps)

    def shape(self, steps, policy):
        return steps.rewards * self.number

    def after_update(self, policy, step):
        step(torch.tensor(self.number))

    def metrics(self):
        return {f"opr/{self.number}": self.number}


def test_every_anchor_acts_in_order():
    two, three = Multiplies(2.0), Multiplies(3.0)
    chain = AnchorChain({"two": two, "three": three})
    assert isinstance(chain, Anchor)
    steps, policy, stepped = make_steps([[1.0, -1.0]], [[0, 0]]), TablePolicy(), []
    chain.observe(steps)
    assert two.observed[0] is three.observed[0] is steps
    assert chain.shape(steps, policy).tolist() == [[6.0, -6.0]]
    assert list(chain.sample([4], policy)) == [None]
    chain.after_update(policy, lambda loss: stepped.append(loss.item()))
    assert stepped == [2.0, 3.0]
    assert chain.metrics() == {"opr/2.0": 2.0, "opr/3.0": 3.0}


def test_the_config_composes_opr_and_sil():
    both = make_anchor(dataclasses.replace(CONFIG, opr=OPRConfig(), sil=SIL))
    assert isinstance(both, AnchorChain)
    assert list(both.anchors) == ["opr", "sil"]
    assert isinstance(make_anchor(SIL_RUN), SelfImitation)
    assert isinstance(make_anchor(dataclasses.replace(CONFIG, opr=OPRConfig())), OptimisticRegularizer)
    assert isinstance(make_anchor(CONFIG), NoAnchor)
    opr, sil = both.anchors["opr"], both.anchors["sil"]
    assert opr.generator.initial_seed() != sil.generator.initial_seed()


def test_each_anchor_of_a_chain_acts_as_it_does_alone():
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
    joined = [anchor.join(batch, anchor.replay(batch, policy)) for anchor in (chain, alone)]
    assert joined[0].obs.equal(joined[1].obs)
    assert len(joined[0]) > len(batch)
    found = [anchor_loss(anchor, policy, *anchor.sample([4], policy)).item() for anchor in (chain, alone)]
    assert found[0] == found[1] != 0.0
    chain.after_update(policy, losses.append)
    assert len(losses) == SIL.updates
    assert {"opr/memory_episodes", "sil/stored", "loss/sil"} <= set(chain.metrics())
    pools = alone.memory.pools
    assert [tensor.shape for tensor in chain.in_place_tensors()] == [pools["priorities"].shape]


class Samples(Anchor):
    """An anchor that samples one row and returns its number as loss."""

    def __init__(self, number: float, *, capturable: bool = True) -> None:
        self.number, self.capturable = number, capturable

    def sample(self, sizes, policy):
        zero = torch.zeros(1, dtype=torch.int64)
        return iter([GoodRows(obs=zero, actions=zero, returns=torch.ones(1), rows=zero)] * len(sizes))

    def loss_on(self, good, logp, values):
        return torch.tensor(self.number)

    def replay(self, batch, policy):
        return batch


def test_the_loss_is_that_of_the_anchor_that_sampled_the_rows():
    chain = AnchorChain({"plain": NoAnchor(), "samples": Samples(3.0), "sil": make_anchor(SIL_RUN)})
    policy = TableActorCritic()
    assert anchor_loss(chain, policy, *chain.sample([4], policy)).item() == 3.0


def test_two_anchors_that_sample_or_replay_rows_are_refused():
    chain, batch = AnchorChain({"one": Samples(1.0), "two": Samples(2.0)}), make_batch(4)
    with pytest.raises(ConfigError, match="one and two both sample rows; one anchor of a chain may"):
        list(chain.sample([4], TableActorCritic()))
    with pytest.raises(ConfigError, match="one and two both replay rows; one anchor of a chain may"):
        chain.replay(batch, TableActorCritic())


def test_two_oprs_in_a_chain_are_refused():
    parts = {name: make_anchor(dataclasses.replace(CONFIG, opr=OPRConfig(bc_batch_size=8))) for name in ("one", "two")}
    chain = AnchorChain(parts)
    chain.observe(random_rollout(0))
    with pytest.raises(ConfigError, match="one and two both sample rows"):
        list(chain.sample([4], TableActorCritic()))


def test_a_chain_is_capturable_if_every_anchor_is():
    assert AnchorChain({"one": NoAnchor(), "two": Samples(1.0)}).capturable
    assert not AnchorChain({"one": NoAnchor(), "two": Samples(1.0, capturable=False)}).capturable
