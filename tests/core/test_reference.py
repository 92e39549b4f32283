"""The cloned reference π_good: a copy of the policy network, cloned on the memory every few updates."""

import copy

import pytest
import torch

from optimist.core import reference as module
from optimist.core.memory import GoodEpisodeMemory
from optimist.core.reference import LEARNING_RATE, ClonedReference
from optimist.errors import ConfigError
from tests.core.tables import TablePolicy, make_episode

OBS, ACTIONS = torch.tensor([0, 1, 2, 3]), torch.tensor([2, 0, 1, 1])


def memory_with(obs, actions):
    memory = GoodEpisodeMemory(100, 10)
    memory.add(make_episode(len(obs), frames=obs, actions=actions))
    return memory


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_reference_is_undefined_while_the_memory_is_empty():
    reference = ClonedReference(batch_size=4)
    reference.refresh(TablePolicy(), GoodEpisodeMemory(10, 10), generator())
    assert reference.log_prob(OBS, ACTIONS) is None


def test_the_reference_approaches_the_memory_and_leaves_the_policy_unchanged(monkeypatch):
    monkeypatch.setattr(module, "LEARNING_RATE", 0.05)
    monkeypatch.setattr(module, "REFRESH_INTERVAL", 1)
    policy = TablePolicy()
    before, unchanged = policy.log_prob(OBS, ACTIONS).detach(), copy.deepcopy(policy.state_dict())
    reference, means = ClonedReference(batch_size=4), []
    for _ in range(3):
        for _ in range(20):
            reference.refresh(policy, memory_with(OBS, ACTIONS), generator())
        means.append(reference.log_prob(OBS, ACTIONS).mean().item())
    assert before.mean().item() < means[0] < means[1] < means[2]
    assert means[2] > -0.2  # nearly always the stored actions
    assert all(policy.state_dict()[name].equal(value) for name, value in unchanged.items())
    assert all(parameter.grad is None for parameter in policy.parameters())


def test_one_refresh_by_hand():
    policy = TablePolicy(num_states=1, num_actions=2)
    with torch.no_grad():
        policy.logits.zero_()
    reference = ClonedReference(batch_size=10)
    reference.refresh(policy, memory_with(torch.tensor([0]), torch.tensor([1])), generator())
    # Adam's first step is ± the learning rate for any gradient
    expected = torch.tensor([[-LEARNING_RATE, LEARNING_RATE]]).log_softmax(-1)[0, 1]
    found = reference.log_prob(torch.tensor([0]), torch.tensor([1])).item()
    assert found == pytest.approx(expected.item(), rel=1e-5)
    assert found > torch.tensor(0.5).log().item()


def test_the_reference_is_refreshed_at_once_and_then_every_tenth_update():
    reference, memory, steps = ClonedReference(batch_size=2), memory_with(OBS, ACTIONS), []
    for _ in range(30):
        reference.refresh(TablePolicy(), memory, generator())
        steps.append(int(reference.optimizer.state[reference.network.logits]["step"]))
    # a pass over four stored steps is two gradient steps; updates 10, 20 and 30 refresh again
    assert steps == [2] * 9 + [4] * 10 + [6] * 10 + [8]


class NormalizingPolicy(TablePolicy):
    """A policy with running statistics, which no gradient changes."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(1))


def test_the_reference_has_the_policys_statistics_of_observations(monkeypatch):
    monkeypatch.setattr(module, "REFRESH_INTERVAL", 1)
    policy, memory, reference = NormalizingPolicy(), memory_with(OBS, ACTIONS), ClonedReference(batch_size=4)
    for mean in (0.0, 5.0):
        policy.mean.fill_(mean)
        reference.refresh(policy, memory, generator())
        assert reference.network.mean.item() == mean
    policy.mean.fill_(9.0)
    assert reference.network.mean.item() == 5.0, "it keeps its own until the next refresh"


@pytest.mark.parametrize("used", [False, True])
def test_a_restored_reference_continues_like_the_saved_one(used):
    policy, memory = TablePolicy(seed=5), memory_with(OBS, ACTIONS)
    reference = ClonedReference(batch_size=3)
    for seed in range(8 if used else 0):
        reference.refresh(policy, memory, generator(seed))
    restored = ClonedReference(batch_size=3)
    restored.load_state_dict(copy.deepcopy(reference.state_dict()), policy)
    for each in (reference, restored):
        for seed in range(3):
            each.refresh(TablePolicy(seed=6 + seed), memory, generator(seed))
    assert reference.log_prob(OBS, ACTIONS).equal(restored.log_prob(OBS, ACTIONS))
    assert reference.updates == restored.updates


def test_a_policy_that_cannot_be_copied_is_refused():
    class NotAModule:
        def log_prob(self, obs, actions):
            return torch.zeros(len(obs))

    with pytest.raises(ConfigError, match=r"needs a torch\.nn\.Module, got NotAModule; use reference 'recorded'"):
        ClonedReference(batch_size=4).refresh(NotAModule(), memory_with(OBS, ACTIONS), generator())
