"""Random inputs for any tested object, the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal import scalars
from pyrnnx._internal.dtypes import FLOAT_TYPES, AnyArray
from pyrnnx.comparison.calls import arranged, prepared_call
from pyrnnx.comparison.inputs import HINT, random_array
from pyrnnx.comparison.models.runs import try_alone
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.frontends.onnx.operators.schemas import DEFAULT_OPSET
from pyrnnx.layers.layer import Layer
from pyrnnx.models.model import Model
from pyrnnx.operator.conventions import AXIS_NAMES
from pyrnnx.testing.cases import Case, make_arrays
from pyrnnx.testing.same.errors import named_after
from pyrnnx.testing.same.subjects import LayerSubject, own_weights, read_subject

_EXPECTED = "expected a layer, a model, a Case, a shape, or a mapping of shapes by name"


def make_inputs(
    what: Any,
    seed: int | Sequence[int],
    *,
    seq_length: int | None = None,
    batch_size: int | None = None,
    dtype: Any = None,
    opset: int = DEFAULT_OPSET,
) -> Any:
    """Make the inputs of the fixture `pyrnnx.testing.fixtures.seeded_inputs`."""
    rng = np.random.default_rng(seed)
    sizes = {
        letter: scalars.integer("seeded_inputs", name, value, 0)
        for letter, name, value in (("T", "seq_length", seq_length), ("N", "batch_size", batch_size))
        if value is not None
    }
    if sizes and (_is_shape(what) or isinstance(what, (Case, Mapping, Model))):
        raise ArgumentError("seeded_inputs: seq_length or batch_size is set; expected them only for layers")
    if isinstance(what, Case):
        return make_arrays(what, _name_of(dtype, what.dtype), int(rng.integers(2**31)))
    with named_after("seeded_inputs"):
        if _is_shape(what):
            return random_array("seeded_inputs: the array", what, [_name_of(dtype, "float32")], rng)
        if isinstance(what, Mapping):
            return _of_shapes(what, _name_of(dtype, "float32"), rng)
        if dtype is not None:
            raise ArgumentError(
                f"seeded_inputs: dtype is {shown(dtype)}; expected it only for a Case or shapes, because a model or "
                "layer has a dtype"
            )
        if isinstance(what, Model):
            return next(iter(try_alone(what, {}, int(rng.integers(2**31)), {}, "seeded_inputs", HINT))).inputs
        subject = read_subject("what", what, opset)
        if not isinstance(subject, LayerSubject):
            raise ArgumentError(f"seeded_inputs: what is {shown(what)}; {_EXPECTED}")
        return _of_layer(subject, sizes, rng)


def _is_shape(what: Any) -> bool:
    return isinstance(what, (tuple, list)) and all(scalars.as_integer(size) is not None for size in what)


def _name_of(dtype: Any, default: str) -> str:
    """Return the NumPy name of a floating-point dtype."""
    if dtype is None:
        return default
    try:
        name = dtype if dtype == "bfloat16" else np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in FLOAT_TYPES:
        raise ArgumentError(f"seeded_inputs: dtype is {shown(dtype)}; expected one of {', '.join(FLOAT_TYPES)}")
    return str(name)


def _of_shapes(shapes: Mapping[str, Any], name: str, rng: np.random.Generator) -> dict[str, AnyArray]:
    for key, shape in shapes.items():
        if not _is_shape(shape):
            raise ArgumentError(
                f"seeded_inputs: the shape of {shown(key)} is {shown(shape)}; expected a tuple of sizes"
            )
    return {
        key: random_array(f"seeded_inputs: array {shown(key)}", shape, [name], rng) for key, shape in shapes.items()
    }


def _of_layer(subject: LayerSubject, sizes: Mapping[str, int], rng: np.random.Generator) -> dict[str, AnyArray]:
    """Return arrays in the layer's own names, arrangement and order; with weights if it has none."""
    layer, names = subject.layer, subject.names
    dims = {AXIS_NAMES[letter]: size for letter, size in sizes.items()}
    (bound, _), arrays = prepared_call(layer, layer, None, int(rng.integers(2**31)), dims)
    call = arranged(bound, arrays)
    result = {names[name][0]: np.ascontiguousarray(call[name]) for name in subject.order if name in call}
    if not isinstance(layer, Layer):
        weights = own_weights(bound)
        has = getattr(layer, "arguments", tuple(weights))
        result |= {names[name][0]: array for name, array in weights.items() if name in has}
    return result
