"""Nested states as JSON and tensors: packing and unpacking are exact."""

import io
import json
import math
from collections import OrderedDict

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from optimist.errors import CheckpointError
from optimist.tracking.nested import pack, unpack


def through_json(state):
    packed = pack(state)
    packed.structure = json.loads(json.dumps(packed.structure, allow_nan=False))
    return unpack(packed)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=20,
)


@given(PLAIN)
def test_plain_values_are_restored_with_their_types(value):
    back = through_json(value)
    assert back == value
    assert repr(back) == repr(value)


NUMBERS = (
    hnp.boolean_dtypes()
    | hnp.integer_dtypes(endianness="=")
    | hnp.unsigned_integer_dtypes(endianness="=")
    | hnp.floating_dtypes(sizes=(16, 32, 64), endianness="=")
)


@given(hnp.arrays(NUMBERS, hnp.array_shapes(min_dims=0, min_side=0, max_side=3)))
def test_numpy_arrays_of_numbers_of_any_shape_are_restored_bit_for_bit(array):
    back = through_json({"a": array})["a"]
    assert isinstance(back, np.ndarray)
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    assert back.flags.writeable or not back.size


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.uint64, torch.int64, torch.bfloat16, torch.float16,
                                   torch.float64])  # fmt: skip
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_torch_tensors_of_numbers_of_any_shape_are_restored(dtype, shape):
    tensor = torch.ones(shape).to(dtype)
    back = through_json({"t": tensor})["t"]
    assert back.dtype == dtype
    assert back.shape == tensor.shape
    assert back.equal(tensor)


def test_tensors_arrays_and_scalars_keep_their_types():
    back = through_json({"t": torch.zeros(()), "n": np.zeros(()), "s": np.float32(1.5), "i": np.int64(3), "f": 2.0})
    assert [type(value) for value in back.values()] == [torch.Tensor, np.ndarray, np.float32, np.int64, float]


def test_restored_random_generators_continue_exactly():
    generator = np.random.default_rng(7)
    generator.random(13)
    other = np.random.default_rng(0)
    other.bit_generator.state = through_json(generator.bit_generator.state)
    assert generator.random(5).tolist() == other.random(5).tolist()

    twister = np.random.RandomState(3)
    second = np.random.RandomState(4)
    second.set_state(through_json(twister.get_state()))
    assert twister.rand(5).tolist() == second.rand(5).tolist()


def test_an_optimizer_state_with_integer_keys_is_restored():
    layer = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(layer.parameters(), betas=(0.8, 0.99))
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    state = through_json(optimizer.state_dict())
    assert set(state["state"]) == {0, 1}
    assert state["param_groups"][0]["betas"] == (0.8, 0.99)
    torch.optim.Adam(layer.parameters()).load_state_dict(state)


def test_nan_and_infinities_are_restored():
    back = through_json([math.nan, math.inf, -math.inf, -0.0])
    assert math.isnan(back[0])
    assert back[1:3] == [math.inf, -math.inf]
    assert math.copysign(1, back[3]) == -1


def test_integers_beyond_pythons_digit_limit_are_restored():
    assert through_json(-(7**9000)) == -(7**9000)


def test_keys_with_equal_text_and_the_tag_itself_do_not_collide():
    state = {1: np.zeros(1), "1": np.ones(1), "$": {"$": "tensor"}, "a/b": torch.zeros(1), "a": {"b": torch.ones(1)}}
    back = through_json(state)
    assert back[1].tolist() == [0]
    assert back["1"].tolist() == [1]
    assert back["$"] == {"$": "tensor"}
    assert back["a/b"].item() == 0
    assert back["a"]["b"].item() == 1


def test_tensors_that_share_memory_are_all_restored():
    base = torch.arange(6.0)
    back = through_json({"whole": base, "part": base[2:4], "transposed": base.view(2, 3).T})
    assert back["part"].tolist() == [2, 3]
    assert back["transposed"].tolist() == [[0, 3], [1, 4], [2, 5]]


def test_an_ordered_dict_is_restored_as_dict_in_the_same_order():
    back = through_json(OrderedDict(b=1, a=2))
    assert type(back) is dict
    assert list(back) == ["b", "a"]


LEAVES = [{1, 2}, b"bytes", io.BytesIO(), torch.float32, np.array([object()]), np.array(["text"]), np.ones(1, ">f4"),
          np.zeros(1, [("i", "<i4"), ("s", "<U3")]), torch.eye(2).to_sparse(), torch.ones(1).cfloat()]  # fmt: skip


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: str(getattr(leaf, "dtype", type(leaf).__name__)))
def test_the_error_names_a_value_that_cannot_be_saved(leaf):
    with pytest.raises(CheckpointError, match="memory/odd"):
        pack({"memory": {"odd": leaf}})
