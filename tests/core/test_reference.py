import copy

import pytest
import torch

from optimist.core.config import OPRConfig
from optimist.core.memory import GoodEpisodeMemory
from optimist.core.reference import Cloned, Recorded, Snapshot, make_reference
from optimist.errors import ConfigError
from tests.core.tables import TablePolicy, make_episode

OBS, ACTIONS = torch.tensor([0, 1, 2, 3]), torch.tensor([2, 0, 1, 1])


def memory_with(obs, actions):
    memory = GoodEpisodeMemory(100, 10)
    memory.add(make_episode(len(obs), frames=obs, actions=actions))
    return memory


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_the_config_names_the_reading():
    kinds = [type(make_reference(OPRConfig(reference=word))) for word in ("recorded", "cloned", "snapshot")]
    assert kinds == [Recorded, Cloned, Snapshot]


def test_recorded_says_nothing_about_states_outside_the_memory():
    reference = Recorded()
    reference.refresh(TablePolicy(), memory_with(OBS, ACTIONS), 1, generator())
    assert reference.log_prob(OBS, ACTIONS) is None


def test_cloned_is_undefined_until_there_is_something_to_clone():
    reference = Cloned(OPRConfig(reference="cloned"))
    reference.refresh(TablePolicy(), GoodEpisodeMemory(10, 10), 0, generator())
    assert reference.log_prob(OBS, ACTIONS) is None


def test_cloned_moves_towards_the_memory_and_leaves_the_policy_alone():
    policy = TablePolicy()
    before, untouched = policy.log_prob(OBS, ACTIONS).detach(), copy.deepcopy(policy.state_dict())
    config = OPRConfig(reference="cloned", reference_interval=1, reference_epochs=20, reference_learning_rate=0.05)
    reference = Cloned(config)
    means = []
    for _ in range(3):
        reference.refresh(policy, memory_with(OBS, ACTIONS), 0, generator())
        means.append(reference.log_prob(OBS, ACTIONS).mean().item())
    assert before.mean().item() < means[0] < means[1] < means[2]
    assert means[2] > -0.2  # nearly always the stored actions
    assert all(policy.state_dict()[name].equal(value) for name, value in untouched.items())
    assert all(parameter.grad is None for parameter in policy.parameters())


def test_one_refresh_of_cloned_by_hand():
    policy, lr = TablePolicy(num_states=1, num_actions=2), 0.01
    with torch.no_grad():
        policy.logits.zero_()
    reference = Cloned(OPRConfig(reference="cloned", reference_learning_rate=lr, bc_batch_size=10))
    reference.refresh(policy, memory_with(torch.tensor([0]), torch.tensor([1])), 0, generator())
    # Adam's first step is ± lr whatever the gradient: logits −lr and +lr
    expected = torch.tensor([[-lr, lr]]).log_softmax(-1)[0, 1]
    assert reference.log_prob(torch.tensor([0]), torch.tensor([1])).item() == pytest.approx(expected.item(), rel=1e-5)


def test_cloned_is_refreshed_at_once_and_then_every_interval_by_its_epochs():
    config = OPRConfig(reference="cloned", reference_interval=3, reference_epochs=2, bc_batch_size=4)
    reference, memory = Cloned(config), memory_with(OBS, ACTIONS)
    steps = []
    for _ in range(7):
        reference.refresh(TablePolicy(), memory, 0, generator())
        steps.append(int(reference.optimizer.state[reference.network.logits]["step"]))
    assert steps == [2, 2, 4, 4, 4, 6, 6]


def test_snapshot_average_by_hand():
    first, second, third = TablePolicy(seed=1), TablePolicy(seed=2), TablePolicy(seed=3)
    reference, memory = Snapshot(OPRConfig(reference="snapshot", snapshot_decay=0.75)), GoodEpisodeMemory(10, 10)
    reference.refresh(first, memory, 0, generator())
    assert reference.log_prob(OBS, ACTIONS) is None, "nothing admitted yet"
    reference.refresh(first, memory, 2, generator())
    assert reference.log_prob(OBS, ACTIONS).equal(first.log_prob(OBS, ACTIONS).detach())
    reference.refresh(second, memory, 1, generator())
    reference.refresh(third, memory, 0, generator())  # no admission: the third is not averaged in
    expected = 0.75 * first.logits.detach() + 0.25 * second.logits.detach()
    torch.testing.assert_close(reference.network.logits.detach(), expected)


def test_a_snapshot_does_not_follow_the_policy():
    policy, reference = TablePolicy(), Snapshot(OPRConfig(reference="snapshot"))
    reference.refresh(policy, GoodEpisodeMemory(10, 10), 1, generator())
    before = reference.log_prob(OBS, ACTIONS)
    with torch.no_grad():
        policy.logits.add_(torch.randn(policy.logits.shape))
    assert reference.log_prob(OBS, ACTIONS).equal(before)


class NormalizingPolicy(TablePolicy):
    """A policy with something that it knows and does not learn by gradients."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(1))


@pytest.mark.parametrize("word", ["cloned", "snapshot"])
def test_a_reference_sees_observations_as_the_policy_does(word):
    policy, memory = NormalizingPolicy(), memory_with(OBS, ACTIONS)
    reference = make_reference(OPRConfig(reference=word, reference_interval=1))
    for mean in (0.0, 5.0):
        policy.mean.fill_(mean)
        reference.refresh(policy, memory, 1, generator())
        assert reference.network.mean.item() == mean
    policy.mean.fill_(9.0)
    assert reference.network.mean.item() == 5.0, "its own until the next refresh"


@pytest.mark.parametrize("word", ["recorded", "cloned", "snapshot"])
@pytest.mark.parametrize("used", [False, True])
def test_a_restored_reference_goes_on_as_the_saved_one(word, used):
    config = OPRConfig(reference=word, reference_interval=2, bc_batch_size=3)
    policy, memory = TablePolicy(seed=5), memory_with(OBS, ACTIONS)
    reference = make_reference(config)
    for seed in range(3 if used else 0):
        reference.refresh(policy, memory, 1, generator(seed))
    restored = make_reference(config)
    restored.load_state_dict(copy.deepcopy(reference.state_dict()), policy)
    for each in (reference, restored):
        for seed in range(3):
            each.refresh(TablePolicy(seed=6 + seed), memory, seed % 2, generator(seed))
    left, right = reference.log_prob(OBS, ACTIONS), restored.log_prob(OBS, ACTIONS)
    assert (left is None and right is None) if word == "recorded" else left.equal(right)


@pytest.mark.parametrize("word", ["cloned", "snapshot"])
def test_a_policy_that_cannot_be_copied_is_refused(word):
    class NotAModule:
        def log_prob(self, obs, actions):
            return torch.zeros(len(obs))

    with pytest.raises(ConfigError, match=r"torch\.nn\.Module"):
        make_reference(OPRConfig(reference=word)).refresh(NotAModule(), memory_with(OBS, ACTIONS), 1, generator())
