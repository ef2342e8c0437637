"""Calls of two layers of any conventions on the same canonical arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS, AnyArray, float_type
from pyrnnx.comparison.inputs import INPUTS, NO_DIMS, random_array, spread_lengths
from pyrnnx.errors import ArgumentError, printable, shortened, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.models.layers import AnyLayer
from pyrnnx.models.model import Model
from pyrnnx.operator import check
from pyrnnx.operator.conventions import (
    AXIS_NAMES,
    CALL_ARGUMENTS,
    CANONICAL,
    canonical_for,
    convert_weights,
    rearrange,
    weight_axes,
)

DEFAULT_SIZES = {"T": 5, "N": 3, "I": 4}
_ANY_LENGTHS = replace(CANONICAL, length_dtypes=INTEGERS)
_LONGEST = 2**31 - 2  # lengths are int32


def label(subject: AnyLayer | Model) -> str:
    """Return the name of a layer or model in errors and tables."""
    return printable(shortened(subject.label))


def prepared_call(
    a: AnyLayer,
    b: AnyLayer,
    inputs: Mapping[str, Any] | None,
    seed: int,
    dims: Mapping[str, int] = NO_DIMS,
    least: int = 0,
) -> tuple[tuple[Layer, Layer], dict[str, AnyArray]]:
    """Return the two layers with weights, and the canonical arrays of their call by canonical name.

    Arrays that `inputs` do not have are random; random lengths are at least `least`.
    """
    _same_kind(a, b)
    rng = np.random.default_rng(seed)
    bound = _bind(a, b, rng)
    op = bound[0].op
    if bound[0].input_size != bound[1].input_size:
        raise _mismatch("input_size", a, bound[0].input_size, b, bound[1].input_size)
    one_step = next((label(layer) for layer in bound if "T" not in layer.convention.axes_of("X")), "")
    for name in inputs or {}:
        if name not in CALL_ARGUMENTS or (name == "initial_c" and not op.has_cell_state):
            raise ArgumentError(f"{INPUTS} has {shown(name)}; expected names out of {', '.join(CALL_ARGUMENTS)}")
    given = {name: value for name, value in (inputs or {}).items() if value is not None}
    arrays = {name: _real(name, value) for name, value in given.items() if name != "sequence_lens"}
    sizes = _sizes(a, b) | _chosen(dims, one_step)
    sizes |= {"I": bound[0].input_size, "H": op.hidden_size, "D": op.num_directions}
    if "X" in arrays and arrays["X"].ndim == 3:
        sizes |= zip("TN", arrays["X"].shape, strict=False)
    if one_step:
        sizes["T"] = 1
    for name in ("X", "initial_h", "initial_c") if op.has_cell_state else ("X", "initial_h"):
        axes = CANONICAL.axes_of(name)
        if name in arrays:
            check.shape(INPUTS, name, arrays[name].shape, axes, sizes)
        else:
            dtypes = [layer.dtype.name for layer in bound]
            arrays[name] = random_array(f"compare: input {name}", (sizes[axis] for axis in axes), dtypes, rng)
    arrays["sequence_lens"] = _lengths(given.get("sequence_lens"), sizes, rng, one_step, least)
    return bound, arrays


def _real(name: str, value: Any) -> AnyArray:
    array = check.as_array(INPUTS, name, value)
    if array.dtype.kind not in "iuf" and float_type(array.dtype) is None:
        raise ArgumentError(f"{INPUTS}: {name} has dtype {array.dtype}; expected real numbers")
    return array


def _lengths(value: Any, sizes: Mapping[str, int], rng: np.random.Generator, one_step: str, least: int) -> AnyArray:
    T, N = sizes["T"], sizes["N"]
    if value is None:
        T = min(T, _LONGEST)
        if one_step:
            return np.ones(N, np.int32)
        return spread_lengths(rng, T, N, least, list(dict.fromkeys([T, min(T, least), min(T, 1)])))
    lengths = check.lengths(INPUTS, _ANY_LENGTHS, value, sizes)
    if lengths is None:
        return np.full(N, min(T, _LONGEST), np.int32)
    if one_step:
        raise ArgumentError(
            f"{INPUTS}: sequence_lens is {shown(lengths.tolist())}; expected 1 for each row: {one_step} runs one step"
        )
    return lengths.astype(np.int32)


def _chosen(dims: Mapping[str, int], one_step: str) -> dict[str, int]:
    """Return the sizes of T and N that a caller sets."""
    names = {AXIS_NAMES[axis]: axis for axis in "TN"}
    for name, size in dims.items():
        if name not in names:
            raise ArgumentError(
                f"compare: dims has {shown(name)}; expected, for layers, {', '.join(names)}", argument="dims"
            )
        if names[name] == "T" and one_step and size != 1:
            raise ArgumentError(
                f"compare: dims has {name} {size}; expected 1: {one_step} runs one step", argument="dims"
            )
    return {names[name]: size for name, size in dims.items()}


def _same_kind(a: AnyLayer, b: AnyLayer) -> None:
    """Reject layers for which no input fits both."""
    for layer in (a, b):
        if layer.op is None:
            raise ArgumentError(
                f"compare: {label(layer)} has no hidden_size; expected a layer with hidden_size or weights"
            )
    for aspect in ("cell", "direction", "hidden_size"):
        first, second = (getattr(layer.op, aspect) for layer in (a, b))
        if first != second:
            raise _mismatch(aspect, a, first, b, second)


def _mismatch(aspect: str, a: AnyLayer, first: Any, b: AnyLayer, second: Any) -> ArgumentError:
    first, second = (getattr(value, "value", value) for value in (first, second))
    return ArgumentError(f"compare: {aspect} is {first} in {label(a)} and {second} in {label(b)}; expected the same")


def _bind(a: AnyLayer, b: AnyLayer, rng: np.random.Generator) -> tuple[Layer, Layer]:
    if isinstance(a, Layer) and isinstance(b, Layer):
        return a, b
    owner = next((layer for layer in (a, b) if isinstance(layer, Layer)), None)
    arrangement = canonical_for((owner or a).convention)
    if owner is None:
        weights = _random_weights(a, b, rng)
    else:
        weights = convert_weights(owner.op, owner.weights, owner.convention, arrangement)
    layers = []
    for layer in (a, b):
        if isinstance(layer, Layer):
            layers.append(layer)
            continue
        assert layer.op is not None  # by _same_kind
        if "B" in weight_axes(layer.op, layer.convention) and "B" not in weights:
            D, GH = weights["W"].shape[:2]
            weights = {**weights, "B": np.zeros((D, 2 * GH), weights["W"].dtype)}
        layers.append(layer.bind(**convert_weights(layer.op, weights, arrangement, layer.convention, layer.label)))
    return layers[0], layers[1]


def _random_weights(a: AnyLayer, b: AnyLayer, rng: np.random.Generator) -> dict[str, AnyArray]:
    op = a.op
    assert op is not None  # by _same_kind
    I = _sizes(b, a)["I"]
    D, H, G = op.num_directions, op.hidden_size, len(op.gates)
    shapes = {"W": (D, G * H, I), "R": (D, G * H, H), "B": (D, 2 * G * H)}
    if all("P" in getattr(layer, "arguments", ()) for layer in (a, b)):
        shapes["P"] = (D, 3 * H)
    dtype = str(a.dtype or b.dtype or "float32")
    scale, what = H**-0.5, f"of {label(a)}"
    return {name: random_array(f"compare: {name} {what}", shape, [dtype], rng, scale) for name, shape in shapes.items()}


def _sizes(*layers: AnyLayer) -> dict[str, int]:
    """Return the sizes of the axes of X: of two layers that fix one, the last decides."""
    sizes = dict(DEFAULT_SIZES)
    for layer in layers:
        sizes |= getattr(layer, "sizes", {})
    return sizes


def ragged_calls(
    layers: Iterable[Layer], arrays: dict[str, AnyArray], inputs: Mapping[str, Any], least: int = 0
) -> list[dict[str, AnyArray]]:
    """Return a call, and as many others with other lengths as few rows need to have 0, 1 and all time steps."""
    T, N, _ = arrays["X"].shape
    lengths = arrays["sequence_lens"]
    takes_lengths = all(layer.convention.axes_of("sequence_lens") for layer in layers)
    if inputs.get("sequence_lens") is not None or not takes_lengths or not N:
        return [arrays]
    left = [length for length in (min(T, 1), least, T) if length not in lengths]
    more = [np.resize(left[start:], N).astype(lengths.dtype) for start in range(0, len(set(left)), N)]
    return [arrays, *({**arrays, "sequence_lens": other} for other in more)]


def run_layer(layer: Layer, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Run a layer of any convention on canonical arrays, and return canonical outputs by canonical name."""
    outputs = run_arranged(layer, arrays)
    axes = layer.convention.axes_of
    return {name: rearrange(array, axes(name), CANONICAL.axes_of(name)) for name, array in outputs.items()}


def run_arranged(layer: Layer, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Run a layer on canonical arrays, and return its outputs by canonical name, in its own arrangement."""
    call: dict[str, Any] = arranged(layer, arrays)
    return dict(zip(layer.output_names, layer.run(**call), strict=True))


def arranged(layer: Layer, arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return canonical arrays in the axes and dtype of the layer's call."""
    call = {}
    for name, array in arrays.items():
        if axes := layer.convention.axes_of(name):
            typed = array if name == "sequence_lens" else _converted(name, array, layer)
            call[name] = rearrange(typed, CANONICAL.axes_of(name), axes)
    return call


def _converted(name: str, array: AnyArray, layer: Layer) -> AnyArray:
    with np.errstate(over="ignore"):  # reported below
        result = array.astype(layer.dtype, copy=False)
    if result is not array and (np.isinf(result) & ~np.isinf(array)).any():
        raise ArgumentError(f"{INPUTS}: {name} has numbers beyond {layer.dtype}, the dtype of {label(layer)}")
    return result
