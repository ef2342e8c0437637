"""Writer of recurrent layers as `<layer>` elements of IR version 11."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal import scalars
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.operator.conventions import axis_size, check_coupling, operator_axes
from pyrnnx.operator.op import Direction, RecurrentOp
from pyrnnx.operator.quantized import Quantized

from .ir.element_types import BY_DTYPE
from .ir.writer import Element, layer_element, port_element, to_text
from .layers import IRLayer, Port
from .schemas import OPERATIONS, Operation, find_operation

_FLOAT32 = np.finfo(np.float32)  # attributes are float32 in OpenVINO


def write_layer(layer: Layer | IRLayer, *, id: int | None = None) -> str:
    """Write the `<layer>` element of a recurrent layer; `read_layer` reads the same operator back.

    Parameters
    ----------
    layer : Layer or IRLayer
        An OpenVINO layer is written as its own operation; a `Layer` of an LSTM as version 1 only if a later version
        cannot express it. Any other layer becomes RNNSequence-5, GRUSequence-5 or LSTMSequence-5, or LSTMSequence-1
        if it has input_forget. An IRLayer's ports are written unchanged. Those of any other layer are declared in the
        operation's order, with batch_size and seq_length dynamic and sequence_lengths of type I32.
    id : int, optional
        Id of the layer in its model. Default: the id of an IRLayer, else 0.

    Returns
    -------
    str
        The element, without weights. IR is always batch-major: see `write_model`.

    Raises
    ------
    PyrnnxError
        The operation cannot express peepholes, input_forget, or activations that differ by direction (by name, alpha or
        beta); an ONNX layer has input_forget and a gate activation other than Sigmoid; a clip is out of float32's
        range; a name has characters that XML does not allow.

    Notes
    -----
    OpenVINO's CPU plugin runs only relu, sigmoid and tanh; other activation functions are written nevertheless.

    Source: OpenVINO IR version 11, as `openvino.save_model` spells it.
    """
    layer = check_layer("write_layer", layer)
    expected = "an integer, 0 or above, of at most 64 bits"
    number = None if id is None else scalars.integer(layer.label, "id", id, 0, 2**63 - 1, expected=expected)
    declared = declared_layer(layer)
    return to_text(layer_xml(layer.label, declared, declared.id if number is None else str(number), declared.name))


def check_layer(function: str, layer: Any) -> Any:
    """Return the layer if it is one of an RNN, GRU or LSTM; errors name the calling `function`.

    Raises
    ------
    ArgumentError
        It is not a layer.
    UnsupportedError
        Its class computes something else.
    """
    if not isinstance(layer, (Layer, IRLayer)):
        raise ArgumentError(
            f"{function}: {type(layer).__name__} was given; expected a recurrent layer, as read_layer and from_node "
            "return, or of a model's layers"
        )
    if isinstance(layer, Layer) and type(layer).run is not Layer.run:
        raise UnsupportedError(
            f"{layer.label}: {type(layer).__name__} does not compute an operation of OpenVINO; expected a layer of an "
            "RNN, GRU or LSTM"
        )
    if isinstance(layer, Layer) and any(isinstance(array, Quantized) for array in layer.kept_weights.values()):
        raise UnsupportedError(
            f"{layer.label}: it rounds X and h to 8 bits in each call, which no operation of OpenVINO does; expected a "
            "layer with floating-point weights"
        )
    return layer


def _operation(layer: Layer | IRLayer) -> Operation:
    if isinstance(layer, IRLayer):
        return layer.operation
    own = next(
        (row for row in OPERATIONS.values() if (row.cell, row.convention) == (layer.op.cell, layer.convention)), None
    )
    if own is not None and (layer.op.input_forget or "P" in layer.weights):
        return own
    opset = 1 if own is None and layer.op.input_forget else None
    operation = find_operation(own.type if own is not None else f"{layer.op.cell}Sequence", opset)
    assert operation is not None
    return operation


def _check_expressible(label: str, op: RecurrentOp, operation: Operation, arguments: Collection[str]) -> None:
    """Raise if the operation lacks an input or attribute that the layer needs."""
    name = operation.versioned_name
    if "P" in arguments and "P" not in operation.inputs:
        raise UnsupportedError(
            f"{label}: P (peepholes) was given; {name} has none (even of zeros), only LSTMSequence-1, LSTMCell-1 and "
            "ONNX's LSTM have them"
        )
    if op.input_forget and "input_forget" not in operation.attributes:
        raise UnsupportedError(
            f"{label}: input_forget is True; {name} has no such attribute, only LSTMSequence-1, LSTMCell-1 and ONNX's "
            "LSTM have it"
        )
    if len(set(op.activations)) > 1:
        lists = " and ".join(", ".join(map(str, functions)) for functions in op.activations)
        raise UnsupportedError(
            f"{label}: activations differ by direction, {lists}; {name} has one list for both, expected a layer for "
            "each direction"
        )
    if op.direction is not Direction.FORWARD and "direction" not in operation.attributes:
        raise UnsupportedError(f"{label}: direction is {op.direction.value}; {name} has none, expected forward")
    if op.clip is not None and not float(_FLOAT32.tiny) <= op.clip <= float(_FLOAT32.max):
        raise UnsupportedError(f"{label}: clip is {op.clip}; {name} stores it as float32, expected 1.2e-38 to 3.4e38")


def declared_layer(layer: Layer | IRLayer, sizes: Mapping[str, int] = {}, lengths: str = "int32") -> IRLayer:
    """Return the layer without weights; `sizes` are of further static axes, `lengths` is the type of sequence_lens."""
    operation = _operation(layer)
    if isinstance(layer, IRLayer):
        _check_expressible(layer.label, layer.op, operation, layer.arguments)
        return layer
    op, convention = layer.op, operation.convention
    _check_expressible(layer.label, op, operation, layer.weights)
    check_coupling(op, layer.convention, convention, layer.label)
    known = {"I": layer.input_size, "H": op.hidden_size, "D": op.num_directions, **sizes}
    axes = operator_axes(op, convention)

    def port(number: int, argument: str) -> Port:
        shape = tuple(axis_size(axis, known) for axis in axes[argument])
        dtype = lengths if argument == "sequence_lens" else layer.dtype.name
        return Port(number, convention.name_of(argument), shape, BY_DTYPE[dtype].precision)

    inputs = [argument for argument in operation.inputs if argument != "P" or "P" in layer.weights]
    ports = tuple(port(number, argument) for number, argument in enumerate((*inputs, *operation.outputs)))
    return IRLayer(op, operation, layer.name or "", "0", ports[: len(inputs)], ports[len(inputs) :])


def _data(op: RecurrentOp, operation: Operation) -> dict[str, str]:
    """Return the operation's attributes in the order in which OpenVINO writes them."""
    functions = op.activations[0]
    values = {
        "direction": op.direction.value,
        "linear_before_reset": _boolean(op.linear_before_reset),
        "hidden_size": str(op.hidden_size),
        "activations": ", ".join(function.name.lower() for function in functions),
        "activations_alpha": _parameters([function.alpha for function in functions]),
        "activations_beta": _parameters([function.beta for function in functions]),
        "clip": "0" if op.clip is None else repr(op.clip),
        "input_forget": _boolean(op.input_forget),
        "weights_format": "fico",
    }
    return {name: text for name, text in values.items() if name in operation.attributes}


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _parameters(values: Sequence[float | None]) -> str:
    """Return parameters by index in activations; 0 for a function without one if a later function has one."""
    used = [index for index, value in enumerate(values) if value is not None]
    return ", ".join(repr(value or 0.0) for value in values[: used[-1] + 1]) if used else ""


def layer_xml(label: str, layer: IRLayer, identifier: str, name: str) -> Element:
    """Return the `<layer>` element of a layer without weights."""
    version = f"opset{layer.operation.first_opset}"
    attributes = {"id": identifier, "name": name, "type": layer.type, "version": version}
    inputs = [port_element(port.id, port.precision, port.shape) for port in layer.inputs]
    outputs = [port_element(port.id, port.precision, port.shape) for port in layer.outputs]
    try:
        return layer_element(attributes, _data(layer.op, layer.operation), inputs, outputs)
    except ValueError as error:
        raise ArgumentError(f"{label}: name is {shown(name)}; expected characters that XML allows ({error})") from None
