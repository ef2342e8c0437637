"""Interface to the custom operators for ONNX Runtime: library, handles, nodes and errors of calls.

A node `pyrnnx.Recurrent` runs a layer and a node `pyrnnx.Python` calls a function, in a session that has registered
`library_path()`, also in bodies of If, Loop and Scan.

Recurrent
    Inputs X, sequence_lens (int32 or int64), initial_h, initial_c, in that order; all but X are optional. Outputs Y,
    Y_h and, for an LSTM, Y_c, all optional. Arrays follow the layer's convention and dtype. Attributes: `handle` (int),
    a `Handle` of the layer; `threads` (int, optional), how many of the session's threads a call may use; `keeps_states`
    (int, optional), 1: a row without steps keeps its initial state, while ONNX returns zeros; `optional_states` (int,
    optional), 1: an initial state with hidden size 0 counts as absent. Without `handle` the node is portable: constant
    inputs W, R, B, P, W_scale, W_zero_point, R_scale, R_zero_point follow, and `portable_attributes` describe the
    layer. Types and shapes of outputs are inferred.
Python
    Any number of inputs and outputs; no input has an empty name. Attribute: `handle` (int), a `Handle` of the function.
    The graph must have the element type (no shape) of each output in its value_info, or as its own output.
Unfold
    Input: X [N, L, C], float32. Output: its windows, [N, windows, kernel * C]. Attributes (ints): `kernel`, `stride`,
    `dilation`, `pad_begin`, `pad_end`. The session fails if X with its padding is shorter than a window.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from pyrnnx import config
from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx._internal.immutable import frozen
from pyrnnx._kernels.onnxruntime import operators, recurrent, runtime
from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import ONNX_LAYOUTS
from pyrnnx.operator.op import Activation, RecurrentOp
from pyrnnx.operator.quantized import Quantized

DOMAIN = "pyrnnx"
RECURRENT = "Recurrent"
PYTHON = "Python"
UNFOLD = "Unfold"
CALL_INPUTS = recurrent.INPUTS[:4]  # of every node Recurrent: X, sequence_lens, initial_h, initial_c
CONSTANT_INPUTS = recurrent.INPUTS[4:]  # of a portable one
_INT, _STRING = 2, 3  # AttributeProto.AttributeType

# TensorProto.DataType and ONNX Runtime's numbers, by NumPy's names.
ELEMENT_TYPES: Mapping[str, int] = {
    "float32": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "float64": 11,
    "uint32": 12,
    "uint64": 13,
    "complex64": 14,
    "complex128": 15,
    "bfloat16": 16,
    "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19,
    "float8_e5m2fnuz": 20,
}


class Handle(int):
    """Number that identifies a layer or a function in the attribute `handle` of nodes of this process.

    It must be alive when a session is created; the session then owns a reference to the target.

    A node Python calls its function with NumPy arrays, read-only and valid during the call only. The function returns
    an array of the declared dtype for each output, or None if the output's name is empty. Any thread may call it.
    """

    target: Any

    def __new__(cls, target: Any) -> Handle:
        handle = super().__new__(cls, runtime.new_handle(target))
        handle.target = target
        return handle

    def __del__(self) -> None:
        runtime.drop_handle(int(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.target,)


def library_path() -> str:
    """Return the path of the library that `SessionOptions.register_custom_ops_library` takes."""
    return str(operators.__file__)


def original_error(error: BaseException) -> BaseException | None:
    """Return, once, the exception in a pyrnnx operator that caused a session's exception; None if there is none."""
    return runtime.exception_of(str(error))


def portable_attributes(layer: Layer) -> dict[str, str | int]:
    """Return the attributes from which any process can build the layer of a node Recurrent."""
    if layer.convention not in ONNX_LAYOUTS or layer.weight_dtype is not None:
        raise ArgumentError(
            f"{layer.label}: it is in convention {layer.convention.name} with weight_dtype {layer.weight_dtype}; "
            "expected ONNX's layout 0 or 1, and none"
        )
    op = layer.op
    described = {
        "cell": op.cell,
        "direction": op.direction.value,
        "activations": [[[f.name, f.alpha, f.beta] for f in functions] for functions in op.activations],
        "clip": op.clip,
        "linear_before_reset": op.linear_before_reset,
        "input_forget": op.input_forget,
        "name": layer.name,
        "label": layer.label,
        "hidden_size": op.hidden_size,
        "layout": ONNX_LAYOUTS.index(layer.convention),
    }
    return {
        "operator": json.dumps(described),
        "hidden_size": op.hidden_size,
        "num_directions": op.num_directions,
        "layout": ONNX_LAYOUTS.index(layer.convention),
    }


def portable_weights(layer: Layer) -> dict[str, AnyArray]:
    """Return the constant inputs of a portable node by name; they follow `CALL_INPUTS`."""
    arrays: dict[str, AnyArray] = {}
    for name in ("W", "R", "B", "P"):
        weight = layer.kept_weights.get(name)
        if isinstance(weight, Quantized):
            arrays |= {name: weight.codes, f"{name}_scale": weight.scale, f"{name}_zero_point": weight.zero_point}
        elif weight is not None:
            arrays[name] = weight
    return {name: arrays[name] for name in CONSTANT_INPUTS if name in arrays}


def rewrite_node(
    node: Any, operator: str, attributes: Mapping[str, str | int], inputs: Iterable[str], outputs: Iterable[str]
) -> None:
    """Turn an onnx.NodeProto into a custom operator in place, with the same name."""
    inputs, outputs, name = list(inputs), list(outputs), node.name
    node.Clear()
    node.name, node.domain, node.op_type = name, DOMAIN, operator
    for key, value in attributes.items():
        if isinstance(value, int):
            node.attribute.add(name=key, type=_INT, i=value)
        else:
            node.attribute.add(name=key, type=_STRING, s=value.encode())
    for field, names in ((node.input, inputs), (node.output, outputs)):
        while names and not names[-1]:
            names.pop()
        field.extend(names)


class _NodeLayer(Layer):
    """Layer of a portable node."""

    _shares = True


def _layer_of(definition: recurrent.Definition) -> Layer:
    """Build the layer of a portable node."""
    try:
        described = json.loads(definition.text)
        functions = tuple(tuple(Activation(*row) for row in rows) for rows in described.pop("activations"))
        name, label, layout = (described.pop(key) for key in ("name", "label", "layout"))
        op = RecurrentOp(**described, activations=functions, label=label)
        if type(layout) is not int or not 0 <= layout < len(ONNX_LAYOUTS):
            raise ValueError(layout)
        convention = ONNX_LAYOUTS[layout]
        sizes = {"hidden_size": op.hidden_size, "num_directions": op.num_directions, "layout": layout}
        if sizes != definition.numbers:
            raise ValueError(definition.numbers)
    except PyrnnxError:
        raise
    except Exception as error:
        raise FormatError(
            f"{RECURRENT}: attribute operator is {shown(definition.text)}, with {shown(definition.numbers)}; "
            "expected attributes written by pyrnnx.onnxruntime.rewrite"
        ) from error
    weights: dict[str, Any] = dict(definition.constants)
    if "W" not in weights or "R" not in weights:
        raise FormatError(f"{RECURRENT}: W or R is not constant; expected initializers")
    for key in ("W", "R"):
        scale, zero_point = weights.pop(f"{key}_scale", None), weights.pop(f"{key}_zero_point", None)
        if scale is not None and zero_point is not None:
            weights[key] = Quantized(*map(frozen, (weights[key], scale, zero_point)))
    return _NodeLayer(op, **weights, convention=convention, name=name, label=label)


def _explain(layer: Layer, X: Any, sequence_lens: Any, initial_h: Any, initial_c: Any) -> None:
    """Raise the layer's error about arguments that do not fit."""
    layer.run(X, sequence_lens, initial_h, *([] if initial_c is None else [initial_c]))


def _dtype(element_type: int) -> np.dtype[Any] | None:
    """Return the dtype of an element type; None if neither NumPy nor an installed ml_dtypes has it."""
    name = next((name for name, number in ELEMENT_TYPES.items() if number == element_type), None)
    with suppress(ImportError):
        return None if name is None else named_dtype(name)
    return None


runtime.set_dtypes(_dtype)
recurrent.set_python(
    layer_of=_layer_of,
    explanation=_explain,
    threads=config.get_num_threads,
    most_threads=len(config.processors()),
)
