"""Recurrent layers written as IR: one `<layer>` element, or as a part of a net, as OpenVINO saves them (version 11)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from pyrnnx import check, scalars
from pyrnnx.conventions import axis_size, check_coupling, convert_weights, operator_axes, rearrange, weight_axes
from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.layer import Layer
from pyrnnx.op import Direction, RecurrentOp

from .ir.element_types import BY_DTYPE, by_precision
from .ir.writer import (
    Element,
    NetWriter,
    Value,
    layer_element,
    port_element,
    to_text,
)
from .layers import IRLayer, Port
from .schemas import OPERATIONS, Operation, find_operation

_FLOAT32 = np.finfo(np.float32)  # attributes are float32 in OpenVINO
_STATES = ("initial_h", "initial_c")


def write_layer(layer: Layer | IRLayer, *, id: int | None = None) -> str:
    """The `<layer>` element of a recurrent layer; `read_layer` reads the same operator back.

    Parameters
    ----------
    layer : Layer or IRLayer
        A layer of OpenVINO becomes the operation that it is (version 1 of an LSTM only where a later one cannot
        express it, or an IRLayer says so); any other RNNSequence-5, GRUSequence-5 or LSTMSequence-5, or with
        input_forget LSTMSequence-1. An IRLayer keeps its ports; those of any other layer are declared in the order of
        the operation, with batch_size and seq_length dynamic and sequence_lengths of type I32.
    id : int, optional
        Of the layer in its model. Default: that of an IRLayer, else 0.

    Returns
    -------
    str
        Weights are no part of it. IR is batch-major, whatever the arrangement of the layer: see `write_model`.

    Raises
    ------
    PyrnnxError
        Peepholes, input_forget, or activations that differ by direction (by name, alpha or beta), where the operation
        has none of these; input_forget of an ONNX layer whose gates have another activation than Sigmoid; a clip that
        float32 does not hold; a name with characters that XML does not allow.

    Notes
    -----
    OpenVINO's CPU plugin runs only relu, sigmoid and tanh; other activation functions are written all the same.

    Source: OpenVINO IR version 11, as `openvino.save_model` spells it.
    """
    layer = check_layer("write_layer", layer)
    expected = "an integer, 0 or above, of at most 64 bits"
    number = None if id is None else scalars.integer(layer.label, "id", id, 0, 2**63 - 1, expected=expected)
    declared = _declared(layer)
    return to_text(_element(layer.label, declared, declared.id if number is None else str(number), declared.name))


# A layer as an operation of OpenVINO


def check_layer(what: str, layer: Any) -> Any:
    """Reject what is no layer of an RNN, GRU or LSTM; `what` is how errors name what it was given to.

    Raises
    ------
    ArgumentError
    UnsupportedError
        One that computes something else.
    """
    if not isinstance(layer, (Layer, IRLayer)):
        raise ArgumentError(
            f"{what}: {type(layer).__name__} was given; expected a recurrent layer, as read_layer, from_node and the "
            "layers of a model are"
        )
    if isinstance(layer, Layer) and type(layer).run is not Layer.run:
        raise UnsupportedError(
            f"{layer.label}: {type(layer).__name__} computes something else than an operation of OpenVINO; expected a "
            "layer of an RNN, GRU or LSTM"
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
    """Reject what the operation has no input or attribute for."""
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
        raise UnsupportedError(f"{label}: clip is {op.clip}; {name} holds it in float32, expected 1.2e-38 to 3.4e38")


def _declared(layer: Layer | IRLayer, sizes: Mapping[str, int] = {}, lengths: str = "int32") -> IRLayer:
    """The layer without weights; `sizes` of further axes that are not dynamic, `lengths`: the type of sequence_lens."""
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
    """The attributes that the operation has, in the order in which OpenVINO writes them."""
    functions = op.activations[0]
    values = {
        "direction": op.direction.value,
        "linear_before_reset": _boolean(op.linear_before_reset),
        "hidden_size": str(op.hidden_size),
        "activations": ", ".join(one.name.lower() for one in functions),
        "activations_alpha": _parameters([one.alpha for one in functions]),
        "activations_beta": _parameters([one.beta for one in functions]),
        "clip": "0" if op.clip is None else repr(op.clip),
        "input_forget": _boolean(op.input_forget),
        "weights_format": "fico",
    }
    return {name: text for name, text in values.items() if name in operation.attributes}


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _parameters(values: Sequence[float | None]) -> str:
    """Parameters by place in activations; 0 for a function that takes none before one that does."""
    taken = [place for place, value in enumerate(values) if value is not None]
    return ", ".join(repr(value or 0.0) for value in values[: taken[-1] + 1]) if taken else ""


def _element(label: str, layer: IRLayer, identifier: str, name: str) -> Element:
    version = f"opset{layer.operation.first_opset}"
    attributes = {"id": identifier, "name": name, "type": layer.type, "version": version}
    inputs = [port_element(port.id, port.precision, port.shape) for port in layer.inputs]
    outputs = [port_element(port.id, port.precision, port.shape) for port in layer.outputs]
    try:
        return layer_element(attributes, _data(layer.op, layer.operation), inputs, outputs)
    except ValueError as error:
        raise ArgumentError(f"{label}: name is {shown(name)}; expected characters that XML allows ({error})") from None


# A model around it


def layer_net(layer: Layer) -> NetWriter:
    """A net of one layer, as `write_model` describes it.

    Raises
    ------
    PyrnnxError
        As of `write_model`.
    """
    operation = _declared(layer).operation
    constants, sizes = _constants(layer, operation)
    # A layer of an ONNX node says which of the operation's inputs the node has.
    asked = {"X", *getattr(layer, "node_inputs", operation.inputs)} - constants.keys()
    declared = _declared(layer, sizes, "int32" if "sequence_lens" in asked | constants.keys() else "int64")
    net = NetWriter(layer.name or operation.type)
    ports = zip(declared.arguments, declared.inputs, strict=True)
    values = {key: net.parameter(port.name, _precision(port), port.shape) for key, port in ports if key in asked}
    outputs = _add(net, layer, declared, constants, values, layer.name or operation.type, "")
    for port, value in zip(declared.outputs, outputs.values(), strict=True):
        net.name_tensor(value, port.name)
        net.result(port.name, value)
    return net


def add_layer(net: NetWriter, layer: Layer, name: str, inputs: Mapping[str, Value]) -> dict[str, Value]:
    """Write a layer into a net; what it has neither as an input nor as a constant is computed there.

    Parameters
    ----------
    net : NetWriter
        In which `name` is reserved.
    layer : Layer
        As of `write_model`.
    name : str
        Of the layer in the net.
    inputs : mapping
        By canonical names, arranged as the operation takes them: X, and any of initial_h, initial_c, sequence_lens.

    Returns
    -------
    dict
        The outputs of the operation by canonical names.

    Raises
    ------
    PyrnnxError
        As of `write_model`; inputs that do not fit the layer.
    """
    layer = check_layer("write_model", layer)
    operation = _declared(layer).operation
    constants, sizes = _constants(layer, operation)
    for key, value in inputs.items():
        axes = operation.convention.axes_of(key)
        if len(value.shape) == len(axes):
            known = {axis: size for axis, size in zip(axes, value.shape, strict=True) if size is not None}
            sizes = known | sizes  # where they differ, that port does not fit
    given = inputs.get("sequence_lens")
    lengths = "int32" if "sequence_lens" in constants else "int64"
    if given is not None:
        lengths = by_precision(layer.label, given.precision).dtype or lengths
    declared = _declared(layer, {axis: sizes[axis] for axis in "TN" if axis in sizes}, lengths)
    for key, port in zip(declared.arguments, declared.inputs, strict=True):
        if key in inputs:
            _check_port(layer, key, port, inputs[key])
    return _add(net, layer, declared, constants, inputs, name, f"{name}/")


def _check_port(layer: Layer, key: str, port: Port, value: Value) -> None:
    fits = len(value.shape) == len(port.shape) and all(
        None in pair or pair[0] == pair[1] for pair in zip(value.shape, port.shape, strict=True)
    )
    if fits and value.precision == port.precision:
        return
    given, expected = (
        f"{precision} [{', '.join('?' if size is None else str(size) for size in shape)}]"
        for precision, shape in ((value.precision, value.shape), (port.precision, port.shape))
    )
    name = layer.convention.name_of(key)
    raise ArgumentError(f"{layer.label}: {name} is {given} in OpenVINO's arrangement; expected {expected}")


def _add(
    net: NetWriter,
    layer: Layer,
    declared: IRLayer,
    constants: Mapping[str, AnyArray],
    inputs: Mapping[str, Value],
    name: str,
    prefix: str,
) -> dict[str, Value]:
    """`prefix`: of the names of the layers that make its other inputs."""
    ports = dict(zip(declared.arguments, declared.inputs, strict=True))
    values = {**inputs, **{key: net.constant(prefix + ports[key].name, array) for key, array in constants.items()}}
    left = {key: port for key, port in ports.items() if key not in values}
    if left:
        values |= _computed(net, left, values["X"], layer.dtype, prefix)
    number = net.add(
        lambda identifier: _element(layer.label, declared, identifier, name),
        [values[key] for key in ports],
        [port.id for port in declared.inputs],
    )
    outputs = zip(declared.operation.outputs, declared.outputs, strict=True)
    return {key: Value(number, port.id, _precision(port), port.shape) for key, port in outputs}


def _precision(port: Port) -> str:
    assert port.precision is not None  # only ports that were read may lack it
    return port.precision


def _constants(layer: Layer, operation: Operation) -> tuple[dict[str, AnyArray], dict[str, int]]:
    """Inputs of the operation that are constants, arranged as it takes them, and the sizes of axes that they fix."""
    label, convention, target = layer.label, layer.convention, operation.convention
    arrays = _weights(layer, operation)
    sizes = {"I": layer.input_size, "H": layer.op.hidden_size, "D": layer.op.num_directions}
    for argument in (name for name in _STATES if name in layer.constants):
        axes, name = convention.axes_of(argument), convention.name_of(argument)
        check.same_dtype(label, name, layer.constants[argument], layer.dtype, "the weights")
        array = check.floating_array(label, name, layer.constants[argument])
        check.shape(label, name, array.shape, axes, sizes)
        sizes.update(zip(axes, array.shape, strict=True))
        arrays[argument] = rearrange(array, axes, target.axes_of(argument))
    if "sequence_lens" in layer.constants:
        array = check.as_array(label, "sequence_lens", layer.constants["sequence_lens"])
        largest = int(array.max(initial=0)) if array.dtype.kind in "iu" else 0
        check.lengths(label, convention, layer.constants["sequence_lens"], {**sizes, "T": largest})
        sizes["N"] = len(array)
        arrays["sequence_lens"] = array.astype(np.int32)
    return arrays, {axis: sizes[axis] for axis in "N" if axis in sizes}


def _weights(layer: Layer, operation: Operation) -> dict[str, AnyArray]:
    with np.errstate(over="ignore"):
        weights = convert_weights(layer.op, layer.weights, layer.convention, operation.convention, layer.label)
    if "B" not in weights:
        sizes = {"H": layer.op.hidden_size, "D": layer.op.num_directions}
        axes = weight_axes(layer.op, operation.convention)["B"]
        weights["B"] = np.zeros([axis_size(axis, sizes) or 0 for axis in axes], layer.dtype)
    elif np.isinf(weights["B"]).any() and not np.isinf(layer.weights["B"]).any():
        raise UnsupportedError(f"{layer.label}: B: a sum Wb + Rb is beyond {layer.dtype}, and IR holds the sum only")
    return weights


def _computed(
    net: NetWriter, ports: Mapping[str, Port], X: Value, dtype: np.dtype[Any], prefix: str
) -> dict[str, Value]:
    """Values for inputs that the ONNX node does not have: full lengths, zero states."""
    shape = net.shape_of(f"{prefix}shape", X)
    batch_size = net.size(f"{prefix}batch_size", shape, 0)
    values = {}
    for argument, port in ports.items():
        name = prefix + port.name
        if argument == "sequence_lens":
            value, sizes = net.size(f"{prefix}seq_length", shape, 1), batch_size
        else:
            rest = net.constant(f"{name}/sizes", np.array(port.shape[1:], np.int64))
            value = net.constant(f"{name}/zero", np.zeros((), dtype))
            sizes = net.concat(f"{name}/shape", [batch_size, rest])
        values[argument] = net.broadcast(name, value, sizes, port.shape)
    return values
