"""Inputs of a call of a model: positional or named arrays of the declared dtypes and shapes."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS, named_dtype
from pyrnnx._kernels.declared import Declared
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.operator.check import as_array, as_declared_integers, conversion, native
from pyrnnx.operator.tensor_info import Dimension, Interval, TensorInfo, fits


class Inputs:
    """Inputs that the calls of a model take; `label` is its name in errors.

    Arrays of exactly the declared dtypes and shapes are recognized by compiled code; `read_inputs` reads all others.
    """

    def __init__(self, label: str, infos: Sequence[TensorInfo]) -> None:
        self._label, self._infos = label, tuple(infos)
        self._declared = _declared(self._infos)

    def read(self, arrays: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Return {input name: value} of a call, as `read_inputs` does."""
        values = self.recognized(arrays, named)
        return read_inputs(self._label, self._infos, arrays, named) if values is None else values

    def recognized(self, arrays: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any] | None:
        """Return {input name: value} of a call; None if `read_inputs` has to read it."""
        return None if self._declared is None else self._declared.recognized(arrays, named)

    def __reduce__(self) -> tuple[Any, ...]:
        return Inputs, (self._label, self._infos)


def _declared(infos: tuple[TensorInfo, ...]) -> Declared | None:
    """Return declarations in the form of compiled code; None if NumPy lacks a dtype."""
    dtypes: list[np.dtype[Any] | None] = []
    for info in infos:
        dtype = np.dtype(object) if info.dtype == "str" else None if info.dtype is None else _dtype(info.dtype)
        if info.dtype is not None and dtype is None:
            return None
        dtypes.append(dtype)
    shapes = [None if info.shape is None else [_bounds(dimension) for dimension in info.shape] for info in infos]
    return Declared(tuple(info.name for info in infos), dtypes, shapes, [info.optional for info in infos])


def _bounds(dimension: Dimension) -> tuple[int, int]:
    low, high = (dimension, dimension) if isinstance(dimension, int) else (0, sys.maxsize)
    if isinstance(dimension, Interval):
        low, high = dimension.low, sys.maxsize if dimension.high is None else dimension.high
    return min(low, sys.maxsize), min(high, sys.maxsize)


def read_inputs(
    label: str, infos: Sequence[TensorInfo], arrays: tuple[Any, ...], named: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return {input name: value} of a call. Values of inputs that are not tensors are returned unchanged."""
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        values = _named_inputs(label, infos, arrays[0], {})
    elif len(arrays) > len(infos):
        raise ArgumentError(f"{label}: {len(arrays)} arrays were given; expected at most {len(infos)}: {listed(infos)}")
    else:
        values = {info.name: value for info, value in zip(infos, arrays, strict=False)}
    if named:
        values = _named_inputs(label, infos, named, values)
    checked: dict[str, Any] = {}
    for info in infos:
        if info.name in values:
            checked[info.name] = _model_input(label, info, values[info.name])
        elif not info.optional:
            raise ArgumentError(f"{label}: input {shown(info.name)} is missing; expected {listed(infos)}")
    return checked


def listed(infos: Sequence[TensorInfo]) -> str:
    return ", ".join(shortened(info.name) for info in infos) or "none"


def _named_inputs(
    label: str, infos: Sequence[TensorInfo], arrays: Mapping[str, Any], before: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the values in `before` and `arrays`, by the inputs' own names."""
    by_name = {alias: info.name for info in infos for alias in info.aliases}
    by_name |= {info.name: info.name for info in infos}
    values = dict(before)
    for name, value in arrays.items():
        if name not in by_name:
            raise ArgumentError(f"{label}: input {shown(name)} is unknown; expected {listed(infos)}")
        if by_name[name] in values:
            how = "under two of its names" if by_name[name] not in before else "by place and by name"
            raise ArgumentError(f"{label}: input {shown(by_name[name])} was given twice, {how}")
        values[by_name[name]] = value
    return values


def _model_input(label: str, info: TensorInfo, value: Any) -> Any:
    if info.dtype is None:
        is_foreign = type(value) is np.ndarray and not value.dtype.isnative
        return native(label, f"input {shown(info.name)}", value) if is_foreign else value
    if type(value) is np.ndarray and value.dtype == _dtype(info.dtype) and fits(info.shape, value.shape):
        return value
    return _converted(label, info, value)


@cache
def _dtype(name: str) -> np.dtype[Any] | None:
    """Return the native dtype of a name; None if NumPy has no fixed one (strings, ml_dtypes not installed)."""
    try:
        return None if name == "str" else named_dtype(name)
    except (ImportError, TypeError):
        return None


def _converted(label: str, info: TensorInfo, value: Any) -> Any:
    assert info.dtype is not None
    name = f"input {shown(info.name)}"
    if value is None:
        raise ArgumentError(f"{label}: {name} is missing; expected an array of {info.dtype}")
    if type(value) is np.ndarray and not value.dtype.isnative:
        value = native(label, name, value)
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
    """Return names that a caller passes, checked to be a sequence of strings."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise ArgumentError(f"{label}: {argument} is {shown(value)}; expected a sequence of names")
    result = tuple(value)
    for name in result:
        if not isinstance(name, str):
            raise ArgumentError(f"{label}: {argument} contains {shown(name)}; expected names")
    return result
