"""Nested state ↔ JSON structure + torch tensors + numpy arrays, exactly and without pickle."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from optimist.errors import CheckpointError

Nested = Any
"""Dicts, lists and tuples whose leaves are torch tensors, numpy arrays and scalars, or plain Python values."""

TAG = "$"  # a JSON object with this key encodes a value that JSON cannot represent
_EXACT_INT = 2**53  # largest integer that readers with double precision keep
_TORCH_NATIVE = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32,
    torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64,
}  # fmt: skip
_NUMPY_NATIVE = {
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "float32", "float64",
}  # fmt: skip


@dataclass
class Packed:
    """A state as JSON, and the tensors and arrays that it names."""

    structure: Any = None
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    arrays: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    storages: set[int] = field(default_factory=set)
    """Addresses of the memory behind `tensors`."""


def pack(state: Nested) -> Packed:
    """Pack `state`; raise with the path of a leaf that cannot be stored exactly."""
    packed = Packed()
    packed.structure = _pack(state, "", packed)
    return packed


def unpack(packed: Packed) -> Nested:
    """The packed state; dict subclasses become dict, and tensors are on the CPU."""
    return _unpack(packed.structure, packed)


def _pack(value: Nested, path: str, packed: Packed) -> Any:
    if isinstance(value, torch.Tensor):
        return _pack_tensor(value, path, packed)
    if isinstance(value, np.ndarray | np.generic):  # before float and str: np.float64 and np.str_ are subclasses
        return _pack_array(value, path, packed)
    if value is None or isinstance(value, bool) or type(value) is str:
        return value
    if type(value) is int:
        return value if abs(value) <= _EXACT_INT else {TAG: "int", "hex": hex(value)}
    if type(value) is float:
        return value if math.isfinite(value) else {TAG: "float", "value": str(value)}
    if isinstance(value, list):
        return [_pack(item, _under(path, index), packed) for index, item in enumerate(value)]
    if isinstance(value, tuple):
        return {TAG: "tuple", "items": [_pack(item, _under(path, i), packed) for i, item in enumerate(value)]}
    if isinstance(value, dict):
        return _pack_dict(value, path, packed)
    raise CheckpointError(
        f"a checkpoint cannot hold '{path}' of type {type(value).__name__}; use arrays or plain values"
    )


def _pack_dict(value: dict[Any, Nested], path: str, packed: Packed) -> Any:
    items = {key: _pack(item, _under(path, key), packed) for key, item in value.items()}
    if all(type(key) is str for key in items) and TAG not in items:
        return items
    for key in items:
        if type(key) not in (str, int, bool, float, type(None)):
            raise CheckpointError(f"a checkpoint cannot hold a key of type {type(key).__name__} under '{path}'")
    return {TAG: "dict", "items": [[_pack(key, path, packed), item] for key, item in items.items()]}


def _pack_tensor(value: torch.Tensor, path: str, packed: Packed) -> Any:
    if value.layout is not torch.strided or value.dtype not in _TORCH_NATIVE:
        raise CheckpointError(
            f"a checkpoint holds dense tensors of real numbers only; '{path}' is {value.layout}, {value.dtype}"
        )
    tensor = value.detach().cpu().contiguous()
    entry = {TAG: "tensor", "name": _free_name(path, packed.tensors)}
    if tensor.untyped_storage().data_ptr() in packed.storages:  # safetensors refuses tensors that share memory
        tensor = tensor.clone()
    packed.storages.add(tensor.untyped_storage().data_ptr())
    packed.tensors[entry["name"]] = tensor
    return entry


def _pack_array(value: np.ndarray[Any, Any] | np.generic, path: str, packed: Packed) -> Any:
    array = np.asarray(value)
    entry: dict[str, Any] = {TAG: "array", "name": _free_name(path, packed.arrays), "shape": list(array.shape)}
    if isinstance(value, np.generic):
        entry["scalar"] = True
    if array.dtype.name not in _NUMPY_NATIVE or not array.dtype.isnative:
        raise CheckpointError(f"a checkpoint holds arrays of real numbers only; '{path}' has dtype {array.dtype}")
    packed.arrays[entry["name"]] = np.ascontiguousarray(array)
    return entry


def _under(path: str, key: object) -> str:
    return f"{path}/{key}" if path else str(key)


def _free_name(path: str, taken: dict[str, Any]) -> str:
    name, number = path or "value", 1
    while name in taken or name == "__metadata__":  # the keys 1 and "1"; a name of the file format itself
        number += 1
        name = f"{path}#{number}"
    return name


def _unpack(value: Any, packed: Packed) -> Nested:
    if isinstance(value, list):
        return [_unpack(item, packed) for item in value]
    if not isinstance(value, dict):
        return value
    match value.get(TAG):
        case None:
            return {key: _unpack(item, packed) for key, item in value.items()}
        case "dict":
            return {_unpack(key, packed): _unpack(item, packed) for key, item in value["items"]}
        case "tuple":
            return tuple(_unpack(item, packed) for item in value["items"])
        case "int":
            return int(value["hex"], 16)
        case "float":
            return float(value["value"])
        case "tensor":
            return packed.tensors[value["name"]]
        case "array":
            array = packed.arrays[value["name"]].reshape(value["shape"])
            return array[()] if value.get("scalar") else array
        case other:
            raise ValueError(f"unknown kind of value '{other}'")
