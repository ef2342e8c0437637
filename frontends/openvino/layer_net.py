"""Writer of recurrent layers inside nets: as the only layer, or between other layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError
from pyrnnx.layers.layer import Layer
from pyrnnx.operator import check
from pyrnnx.operator.conventions import axis_size, convert_weights, rearrange, weight_axes

from .ir.element_types import by_precision
from .ir.writer import NetWriter, Value
from .layer_writer import check_layer, declared_layer, layer_xml
from .layers import IRLayer, Port
from .schemas import Operation

_STATES = ("initial_h", "initial_c")


def layer_net(layer: Layer) -> NetWriter:
    """Build a net of one layer; notes and errors: `write_model`."""
    operation = declared_layer(layer).operation
    constants, sizes = _constants(layer, operation)
    # An ONNX node may have fewer inputs than the operation.
    wanted = {"X", *getattr(layer, "node_inputs", operation.inputs)} - constants.keys()
    declared = declared_layer(layer, sizes, "int32" if "sequence_lens" in wanted | constants.keys() else "int64")
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

    Parameters
    ----------
    net : NetWriter
        The net; `name` is reserved in it.
    layer : Layer
        The layer, as for `write_model`.
    name : str
        Name of the layer in the net.
    inputs : mapping
        X, and any of initial_h, initial_c, sequence_lens, by canonical names, in the operation's arrangement.

    Returns
    -------
    dict
        The outputs of the operation by canonical names.

    Raises
    ------
    PyrnnxError
        As in `write_model`; or inputs do not fit the layer.
    """
    layer = check_layer("write_model", layer)
    operation = declared_layer(layer).operation
    constants, sizes = _constants(layer, operation)
    for key, value in inputs.items():
        axes = operation.convention.axes_of(key)
        if len(value.shape) == len(axes):
            known = {axis: size for axis, size in zip(axes, value.shape, strict=True) if size is not None}
            sizes = known | sizes  # if they differ, _check_port raises below
    lengths = "int32" if "sequence_lens" in constants else "int64"
    if "sequence_lens" in inputs:
        lengths = by_precision(layer.label, inputs["sequence_lens"].precision).dtype or lengths
    declared = declared_layer(layer, {axis: sizes[axis] for axis in "TN" if axis in sizes}, lengths)
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
    actual, expected = (
        f"{precision} [{', '.join('?' if size is None else str(size) for size in shape)}]"
        for precision, shape in ((value.precision, value.shape), (port.precision, port.shape))
    )
    name = layer.convention.name_of(key)
    raise ArgumentError(f"{layer.label}: {name} is {actual} in OpenVINO's arrangement; expected {expected}")


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
    number = net.add(
        lambda identifier: layer_xml(layer.label, declared, identifier, name),
        [values[key] for key in ports],
        [port.id for port in declared.inputs],
    )
    outputs = zip(declared.operation.outputs, declared.outputs, strict=True)
    return {key: Value(number, port.id, _precision(port), port.shape) for key, port in outputs}


def _precision(port: Port) -> str:
    assert port.precision is not None  # only ports read from XML may lack it
    return port.precision


def _constants(layer: Layer, operation: Operation) -> tuple[dict[str, AnyArray], dict[str, int]]:
    """Return the operation's constant inputs in its arrangement, and the sizes of axes that they fix."""
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
        raise UnsupportedError(f"{layer.label}: B: a sum Wb + Rb overflows {layer.dtype}, and IR stores only the sum")
    return weights


def _computed(
    net: NetWriter, ports: Mapping[str, Port], X: Value, dtype: np.dtype[Any], prefix: str
) -> dict[str, Value]:
    """Write values of inputs that the ONNX node does not have: full lengths, zero states."""
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
