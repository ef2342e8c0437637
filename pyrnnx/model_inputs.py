"""What a model is called with: arrays by place or by name, each of the declared dtype and shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from pyrnnx.check import as_array, as_declared_integers, conversion, native
from pyrnnx.dtypes import INTEGERS
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.tensor_info import TensorInfo, fits


def read_inputs(
    label: str, infos: Sequence[TensorInfo], arrays: tuple[Any, ...], named: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """What a model was called with, by the names of its inputs; values of inputs that are no tensors as they are.

    Raises
    ------
    ArgumentError
        Inputs that are missing, unknown or given twice, and those whose dtype or shape is not the declared one.
    """
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        given = _named_inputs(label, infos, arrays[0], {})
    elif len(arrays) > len(infos):
        raise ArgumentError(
            f"{label}: {len(arrays)} arrays were given; expected at most {len(infos)}: {_listed(infos)}"
        )
    else:
        given = {info.name: value for info, value in zip(infos, arrays, strict=False)}
    if named:
        given = _named_inputs(label, infos, named, given)
    values: dict[str, Any] = {}
    for info in infos:
        if info.name in given:
            values[info.name] = _model_input(label, info, given[info.name])
        elif not info.optional:
            raise ArgumentError(f"{label}: input {shown(info.name)} is missing; expected {_listed(infos)}")
    return values


def _listed(infos: Sequence[TensorInfo]) -> str:
    return ", ".join(shortened(info.name) for info in infos) or "none"


def _named_inputs(
    label: str, infos: Sequence[TensorInfo], arrays: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """Those given `before`, and these by the inputs' own names."""
    by_name = {alias: info.name for info in infos for alias in info.aliases}
    by_name |= {info.name: info.name for info in infos}
    given = dict(before)
    for name, value in arrays.items():
        if name not in by_name:
            raise ArgumentError(f"{label}: input {shown(name)} is unknown; expected {_listed(infos)}")
        if by_name[name] in given:
            how = "under two of its names" if by_name[name] not in before else "by place and by name"
            raise ArgumentError(f"{label}: input {shown(by_name[name])} was given twice, {how}")
        given[by_name[name]] = value
    return given


def _model_input(label: str, info: TensorInfo, value: Any) -> Any:
    name = f"input {shown(info.name)}"
    if type(value) is np.ndarray and not value.dtype.isnative:
        value = native(label, name, value)
    if info.dtype is None:
        return value
    if type(value) is np.ndarray and value.dtype.name == info.dtype and fits(info.shape, value.shape):
        return value
    if value is None:
        raise ArgumentError(f"{label}: {name} is missing; expected an array of {info.dtype}")
    array = as_array(label, name, value)
    if info.dtype in INTEGERS:
        array = as_declared_integers(label, name, value, array, info.dtype)
    if array.dtype.name != info.dtype and not (info.dtype == "str" and array.dtype.kind in "OU"):
        hint = "" if info.dtype == "str" else conversion("array", value, array.dtype, info.dtype)
        raise ArgumentError(f"{label}: {name} has dtype {array.dtype}; expected {info.dtype}{hint}")
    if not fits(info.shape, array.shape):
        declared = ", ".join("?" if size is None else str(size) for size in info.shape or ())
        raise ArgumentError(f"{label}: {name} has shape {array.shape}; expected [{declared}]")
    return native(label, name, array)


def given_names(label: str, value: Any, argument: str = "outputs") -> tuple[str, ...]:
    """What a model is asked for: a sequence of strings."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise ArgumentError(f"{label}: {argument} is {shown(value)}; expected a sequence of names")
    result = tuple(value)
    for name in result:
        if not isinstance(name, str):
            raise ArgumentError(f"{label}: {argument} holds {shown(name)}; expected names")
    return result
