"""Writer of recurrent layers as `<layer>` elements of IR version 11: alone, or in nets."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx._internal import scalars
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError
from pyrnnx.layers.layer import Layer
from pyrnnx.operator import check
from pyrnnx.operator.conventions import axis_size, check_coupling, convert_weights, rearrange, weight_axes
from pyrnnx.operator.op import Direction, RecurrentOp
from pyrnnx.operator.quantized import Quantized

from .ir.element_types import BY_DTYPE, by_precision
from .ir.writer import NetWriter, Value, layer_element, port_element, to_text
from .layers import IRLayer, Port, declare
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
    row = _declared(layer)
    identifier = row.id if number is None else str(number)
    inputs, outputs = (
        [port_element(port.id, port.precision, port.shape) for port in ports] for ports in (row.inputs, row.outputs)
    )
    data = _data(row.op, row.operation)
    return to_text(layer_element(identifier, row.name, row.type, row.operation.first_opset, data, inputs, outputs))


def check_layer(function: str, layer: Any) -> Any:
    """Return the layer if it is one of an RNN, GRU or LSTM; errors name the calling `function`."""
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


def _declared(layer: Layer | IRLayer, sizes: Mapping[str, int] = {}, lengths: str = "int32") -> IRLayer:
    """Return the layer without weights; `sizes` are of further static axes, `lengths` is the type of sequence_lens."""
    operation = _operation(layer)
    if isinstance(layer, IRLayer):
        _check_expressible(layer.label, layer.op, operation, layer.arguments)
        return layer
    _check_expressible(layer.label, layer.op, operation, layer.weights)
    check_coupling(layer.op, layer.convention, operation.convention, layer.label)
    arguments = [argument for argument in operation.inputs if argument != "P" or "P" in layer.weights]
    known = {"I": layer.input_size, **sizes}
    name, dtype = layer.name or "", layer.dtype.name
    return declare(layer.op, operation, arguments, known, dtype=dtype, lengths=lengths, name=name)


def _data(op: RecurrentOp, operation: Operation) -> dict[str, str]:
    """Return the operation's attributes in the order in which OpenVINO writes them."""
    functions = op.activations[0]
    values = {
        "direction": op.direction.value,
        "linear_before_reset": str(op.linear_before_reset).lower(),
        "hidden_size": str(op.hidden_size),
        "activations": ", ".join(function.name.lower() for function in functions),
        "activations_alpha": _parameters([function.alpha for function in functions]),
        "activations_beta": _parameters([function.beta for function in functions]),
        "clip": "0" if op.clip is None else repr(op.clip),
        "input_forget": str(op.input_forget).lower(),
        "weights_format": "fico",
    }
    return {name: text for name, text in values.items() if name in operation.attributes}


def _parameters(values: Sequence[float | None]) -> str:
    """Return parameters by index in activations; 0 for a function without one if a later function has one."""
    used = [index for index, value in enumerate(values) if value is not None]
    return ", ".join(repr(value or 0.0) for value in values[: used[-1] + 1]) if used else ""


def layer_net(layer: Layer) -> NetWriter:
    """Build a net of one layer; notes and errors: `write_model`."""
    operation = _declared(layer).operation
    constants, sizes = _constants(layer, operation)
    # An ONNX node may have fewer inputs than the operation.
    wanted = {"X", *getattr(layer, "node_inputs", operation.inputs)} - constants.keys()
    declared = _declared(layer, sizes, "int32" if "sequence_lens" in wanted | constants.keys() else "int64")
    net = NetWriter(layer.name or operation.type)
    ports = zip(declared.arguments, declared.inputs, strict=True)
    values = {key: net.parameter(port.name, _precision(port), port.shape) for key, port in ports if key in wanted}
    outputs = _add(net, layer, declared, constants, values, layer.name or operation.type, "")
    for port, value in zip(declared.outputs, outputs.values(), strict=True):
        net.name_tensor(value, port.name)
        net.result(port.name, value)
    return net


def add_layer(net: NetWriter, layer: Layer, name: str, inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Write a layer into a net; the net computes inputs that are neither passed nor constants of the layer.

    `inputs` are X and any of initial_h, initial_c and sequence_lens, in the operation's arrangement; `name` is reserved
    in the net. Return the outputs of the operation.
    """
    layer = check_layer("write_model", layer)
    operation = _declared(layer).operation
    constants, sizes = _constants(layer, operation)
    sizes |= {"I": layer.input_size, "H": layer.op.hidden_size, "D": layer.op.num_directions}
    lengths, precision = "int32" if "sequence_lens" in constants else "int64", BY_DTYPE[layer.dtype.name].precision
    for key, value in inputs.items():
        argument, axes = layer.convention.name_of(key), operation.convention.axes_of(key)
        check.shape(layer.label, f"{argument} in OpenVINO's arrangement", value.shape, axes, sizes)
        sizes |= {axis: size for axis, size in zip(axes, value.shape, strict=True) if size is not None}
        if key == "sequence_lens":
            lengths = by_precision(layer.label, value.precision).dtype or lengths
        elif value.precision != precision:
            raise ArgumentError(f"{layer.label}: {argument} has type {value.precision}; expected {precision}")
    declared = _declared(layer, sizes, lengths)
    return _add(net, layer, declared, constants, inputs, name, f"{name}/")


def _add(
    net: NetWriter,
    layer: Layer,
    declared: IRLayer,
    constants: Mapping[str, AnyArray],
    inputs: Mapping[str, Value],
    name: str,
    prefix: str,
) -> dict[str, Value]:
    """Add the layer and the layers of its missing inputs, whose names begin with `prefix`."""
    ports = dict(zip(declared.arguments, declared.inputs, strict=True))
    values = {**inputs, **{key: net.constant(prefix + ports[key].name, array) for key, array in constants.items()}}
    missing = {key: port for key, port in ports.items() if key not in values}
    if missing:
        values |= _computed(net, missing, values["X"], layer.dtype, prefix)
    sources = [values[key]._replace(shape=port.shape) for key, port in ports.items()]
    outputs = [(_precision(port), port.shape) for port in declared.outputs]
    data, opset = _data(declared.op, declared.operation), declared.operation.first_opset
    results = net.layer(name, declared.type, opset, data, sources, outputs, is_reserved=True)
    return dict(zip(declared.operation.outputs, results, strict=True))


def _precision(port: Port) -> str:
    assert port.precision is not None  # only ports read from XML may lack it
    return port.precision


def _constants(layer: Layer, operation: Operation) -> tuple[dict[str, AnyArray], dict[str, int]]:
    """Return the operation's constant inputs in its arrangement, and the size of N if they fix it."""
    arrays, sizes = _weights(layer, operation), dict[str, int]()
    for argument in operation.inputs:
        array = layer.constants.get(argument)
        if array is not None:
            axes = layer.convention.axes_of(argument)
            check.shape(layer.label, layer.convention.name_of(argument), array.shape, axes, sizes)
            sizes["N"] = array.shape[axes.index("N")]
            arrays[argument] = rearrange(array, axes, operation.convention.axes_of(argument))
            if argument == "sequence_lens":
                arrays[argument] = arrays[argument].astype(np.int32)
    return arrays, sizes


def _weights(layer: Layer, operation: Operation) -> dict[str, AnyArray]:
    with np.errstate(over="ignore"):
        weights = convert_weights(layer.op, layer.weights, layer.convention, operation.convention, layer.label)
    if "B" not in weights:
        sizes = {"H": layer.op.hidden_size, "D": layer.op.num_directions}
        axes = weight_axes(layer.op, operation.convention)["B"]
        weights["B"] = np.zeros([axis_size(axis, sizes) or 0 for axis in axes], layer.dtype)
    elif np.isinf(weights["B"]).any() and not np.isinf(layer.weights["B"]).any():
        raise UnsupportedError(f"{layer.label}: B: a sum Wb + Rb overflows {layer.dtype}, and IR stores only the sum")
    return weights


def _computed(
    net: NetWriter, ports: Mapping[str, Port], X: Value, dtype: np.dtype[Any], prefix: str
) -> dict[str, Value]:
    """Write values of inputs that the ONNX node does not have: full lengths, zero states."""
    (shape,) = net.layer(f"{prefix}shape", "ShapeOf", 3, {"output_type": "i64"}, [X], [("I64", (len(X.shape),))])

    def size(name: str, axis: int) -> Value:
        at = [
            net.constant(f"{prefix}{name}/{key}", np.array(value, np.int64))
            for key, value in (("axis", [axis]), ("0", 0))
        ]
        return net.layer(f"{prefix}{name}", "Gather", 8, {"batch_dims": "0"}, [shape, *at], [("I64", (1,))])[0]

    batch_size = size("batch_size", 0)
    values = {}
    for argument, port in ports.items():
        name = prefix + port.name
        if argument == "sequence_lens":
            value, sizes = size("seq_length", 1), batch_size
        else:
            parts = [batch_size, net.constant(f"{name}/sizes", np.array(port.shape[1:], np.int64))]
            value = net.constant(f"{name}/zero", np.zeros((), dtype))
            (sizes,) = net.layer(f"{name}/shape", "Concat", 1, {"axis": "0"}, parts, [("I64", (len(port.shape),))])
        output = (value.precision, port.shape)
        (values[argument],) = net.layer(name, "Broadcast", 3, {"mode": "numpy"}, [value, sizes], [output])
    return values
