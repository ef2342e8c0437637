"""Layers and stacks written as ONNX models."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pyrnnx._internal import scalars
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.files import is_path
from pyrnnx._internal.writing import write_files
from pyrnnx.errors import ArgumentError, PyrnnxError, UnsupportedError, shortened, shown
from pyrnnx.layers.layer import CONSTANTS, Layer
from pyrnnx.operator import check
from pyrnnx.operator.conventions import CANONICAL, convert_weights, rearrange
from pyrnnx.operator.quantized import Quantized
from pyrnnx.stacks.stack import Stack
from pyrnnx.stacks.states import StateForm

from ..file import model_files
from ..operators.schemas import DEFAULT_OPSET, Schema, op_attributes, schema
from .graph import Dimension, GraphWriter

if TYPE_CHECKING:
    from onnx import ModelProto

ROWS_FIRST = (1, 0, 2)  # swaps seq_length and batch_size
SEQ_LENGTH, BATCH_SIZE = "seq_length", "batch_size"


def write_model(
    source: Layer | Stack,
    path: str | os.PathLike[str] | None = None,
    *,
    inputs: Iterable[str] | None = None,
    opset: int = DEFAULT_OPSET,
) -> ModelProto:
    """Return a recurrent layer or a stack as an ONNX model of RNN, GRU and LSTM nodes.

    Parameters
    ----------
    source : Layer or Stack
        A layer with its weights may follow any convention: that of ONNX (`from_node`), or of OpenVINO (`IRLayer.bind`).
    path : str or os.PathLike, optional
        The .onnx file to write. If writing fails, an existing file stays as it was. Weights of more than 2 GiB, which a
        protobuf message cannot hold, are written to a second file, model.onnx.data. Default: no file.
    inputs : iterable of str, optional
        The inputs of the model besides X: any of "sequence_lens", "initial_h" and "initial_c". Default: those that a
        call of the layer requires; only layers of OpenVINO require any.
    opset : int
        Version of the default domain.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    PyrnnxError
        The source is neither a layer with weights nor a stack; an input is unknown, given twice, or none of any layer;
        the opset has no such dtype or attribute; the path does not end in .onnx or cannot be written.

    Notes
    -----
    The model of a layer has the inputs and outputs of the operator with layout 0, whatever the convention of the layer:
    X [seq_length, batch_size, input_size], sequence_lens [batch_size] (int32), initial_h and initial_c
    [num_directions, batch_size, hidden_size]; Y [seq_length, num_directions, batch_size, hidden_size], Y_h and Y_c.
    Constants of a layer become constants, or the defaults of the inputs that `inputs` names.

    The model of a stack has the inputs and outputs of a call of the stack: `batch_first` gives the axes of X and Y, and
    Y has both directions side by side. If all layers have the same hidden_size, each state is one array; otherwise each
    layer has its own: initial_h_0, Y_h_0, Y_c_0 and so on. Nodes that move axes are written only at both ends of a
    stack with `batch_first`, and after a bidirectional layer.

    seq_length and batch_size are free. Nodes have the names of the layers, and new names if these are empty or not
    unique. Weights are written in their own dtype, not in weight_dtype. clip, alpha and beta are rounded to float32,
    the type of attributes in ONNX.

    Source: the operators RNN, GRU and LSTM of ONNX; Transpose, Reshape, Squeeze, Split and Concat.
    """
    if not isinstance(source, (Layer, Stack)):
        raise ArgumentError(
            f"write_model: {type(source).__name__} was given; expected a recurrent layer with its weights, or a Stack"
        )
    label = source.label
    target = None if path is None else _target(label, path)
    version = scalars.integer(label, "opset", opset, 1, expected="a positive integer")
    schema("LSTM", version)  # rejects one that is not known
    graph = GraphWriter(version, source.dtype)
    try:
        if isinstance(source, Layer):
            own = [name for name in CONSTANTS if name in source.convention.required and name not in source.constants]
            own = [name for name in own if name != "initial_c" or source.op.has_cell_state]
            write_layer(graph, source, _asked(label, own if inputs is None else inputs, [source]))
        else:
            write_stack(graph, source, _asked(label, () if inputs is None else inputs, source.layers))
        model = graph.model(source.name or type(source).__name__)
    except PyrnnxError:
        raise
    except (ValueError, MemoryError) as error:  # protobuf's, of a name that is not Unicode or of the size
        raise ArgumentError(f"{label}: the model cannot be written ({shortened(str(error))})") from error
    if target is not None:
        write_files(label, model_files(model, target))
    return model


def _asked(label: str, inputs: Any, layers: Sequence[Layer]) -> list[str]:
    """Return the requested inputs in the operator's order."""
    names = list(inputs) if isinstance(inputs, Iterable) else [inputs]
    are_known = all(isinstance(name, str) and name in CONSTANTS for name in names)
    if isinstance(inputs, str) or not are_known or len({*names}) < len(names):
        raise ArgumentError(
            f"{label}: inputs is {shown(inputs)}; expected a list of some of {', '.join(CONSTANTS)}, each once"
        )
    if "initial_c" in names and not any(layer.op.has_cell_state for layer in layers):
        cells = ", ".join(dict.fromkeys(layer.op.cell for layer in layers))
        raise UnsupportedError(f"{label}: inputs has 'initial_c'; {cells} has no cell state")
    return [name for name in CONSTANTS if name in names]


def _target(label: str, path: Any) -> Path:
    if not is_path(path):
        raise ArgumentError(f"{label}: path is {shown(path)}; expected the path of an .onnx")
    target = Path(path)
    if target.suffix.lower() != ".onnx":
        raise ArgumentError(f"{label}: path is {shown(os.fspath(path))}; expected a name that ends in .onnx")
    return target


def write_stack(graph: GraphWriter, stack: Stack, optional_inputs: Collection[str]) -> None:
    names = [node_name(graph, layer, k) for k, layer in enumerate(stack.layers)]
    value = graph.input("X", _sequence(stack, stack.input_size))
    if stack.batch_first:
        value = graph.transpose(value, ROWS_FIRST, "X_steps")
    sources: dict[str, str] = {}
    if "sequence_lens" in optional_inputs:
        sources["sequence_lens"] = graph.input("sequence_lens", [BATCH_SIZE], np.dtype(np.int32))
    states = {
        form.argument: _initial(graph, form, names) for form in stack.state_forms if form.argument in optional_inputs
    }
    forms = dict(zip(("Y_h", "Y_c"), stack.state_forms, strict=True))
    for k, (name, layer) in enumerate(zip(names, stack.layers, strict=True)):
        own = {key: values[k] for key, values in states.items() if values[k]}
        outputs = {key: _state_name(forms[key], key, k, name) for key in layer.output_names[1:]}
        write_node(graph, layer, name, sources | own | {"X": value}, outputs | {"Y": f"{name}.Y"})
        if name != names[-1]:
            value = _side_by_side(graph, layer, f"{name}.Y", f"{name}.steps")
    _last(graph, stack, stack.layers[-1], f"{names[-1]}.Y")
    graph.output("Y", _sequence(stack, stack.output_size))
    for key in stack.output_names[1:]:
        _final(graph, forms[key], key, names)


def _sequence(stack: Stack, size: int) -> list[Dimension]:
    return [BATCH_SIZE, SEQ_LENGTH, size] if stack.batch_first else [SEQ_LENGTH, BATCH_SIZE, size]


def _last(graph: GraphWriter, stack: Stack, layer: Layer, Y: str) -> None:
    D, H = layer.op.num_directions, layer.op.hidden_size
    if not stack.batch_first:
        _side_by_side(graph, layer, Y, "Y")
    elif D == 1:
        graph.transpose(graph.squeeze(Y, 1, "Y_steps"), ROWS_FIRST, "Y")
    else:
        graph.reshape(graph.transpose(Y, (2, 0, 1, 3), f"{Y}.rows"), [0, 0, D * H], "Y")


def _side_by_side(graph: GraphWriter, layer: Layer, Y: str, output: str) -> str:
    """Write Y [T, D, N, H] as [T, N, D*H]."""
    D, H = layer.op.num_directions, layer.op.hidden_size
    if D == 1:
        return graph.squeeze(Y, 1, output)
    return graph.reshape(graph.transpose(Y, (0, 2, 1, 3), f"{Y}.rows"), [0, 0, D * H], output)


def _parts(form: StateForm) -> int:
    return sum(D > 0 for D in form.counts)


def _state_name(form: StateForm, key: str, k: int, name: str) -> str:
    """Return the name of the last state of layer k: the output's name if no Concat follows."""
    if not form.is_joined:
        return f"{key}_{k}"
    return key if _parts(form) == 1 else f"{name}.{key}"


def _initial(graph: GraphWriter, form: StateForm, names: Sequence[str]) -> list[str]:
    """Return the name of each layer's initial state, "" if it has none."""
    key = form.argument
    sizes = [(D, BATCH_SIZE, op.hidden_size) for D, op in zip(form.counts, form.ops, strict=True)]
    if not form.is_joined:
        return [graph.input(f"{key}_{k}", shape) if shape[0] else "" for k, shape in enumerate(sizes)]
    joined = graph.input(key, [sum(form.counts), BATCH_SIZE, form.ops[0].hidden_size])
    if _parts(form) == 1:
        return [joined if D else "" for D in form.counts]
    values = [f"{name}.{key}" if D else "" for name, D in zip(names, form.counts, strict=True)]
    graph.split(joined, [D for D in form.counts if D], [value for value in values if value])
    return values


def _final(graph: GraphWriter, form: StateForm, key: str, names: Sequence[str]) -> None:
    if not form.is_joined:
        for k, (D, op) in enumerate(zip(form.counts, form.ops, strict=True)):
            if D:
                graph.output(f"{key}_{k}", [D, BATCH_SIZE, op.hidden_size])
        return
    if _parts(form) > 1:
        values = [f"{name}.{key}" for name, D in zip(names, form.counts, strict=True) if D]
        graph.node("Concat", values, [key], axis=0)
    graph.output(key, [sum(form.counts), BATCH_SIZE, form.ops[0].hidden_size])


def write_node(
    graph: GraphWriter, layer: Layer, name: str, sources: Mapping[str, str], outputs: Mapping[str, str]
) -> None:
    """Write the node of a layer, with its weights; `sources` and `outputs` are the other names, by argument."""
    definition = _schema_of(layer, graph.opset)
    weights = convert_weights(layer.op, layer.weights, layer.convention, CANONICAL, layer.label)
    given = {key: graph.constant(f"{name}.{key}", np.ascontiguousarray(array)) for key, array in weights.items()}
    given |= sources
    graph.node(
        layer.op.cell,
        [given.get(key, "") for key in definition.inputs],
        [outputs[key] for key in definition.outputs],
        name,
        **_attributes(layer),
        **({"output_sequence": 1} if "output_sequence" in definition.attributes else {}),  # without it, Y is no output
    )


def _attributes(layer: Layer) -> dict[str, Any]:
    attributes = op_attributes(layer.op)
    for name in ("activation_alpha", "activation_beta", "clip"):
        for value in np.ravel(attributes.get(name, ())):
            with np.errstate(over="ignore", under="ignore"):
                rounded = np.float32(value)
            if value and (rounded == 0 or np.isinf(rounded)):
                raise UnsupportedError(
                    f"{layer.label}: {name} is {value}; ONNX holds it in float32, expected 1.2e-38 to 3.4e38"
                )
    return attributes


def node_name(graph: GraphWriter, layer: Layer, place: int = 0) -> str:
    return graph.unique(layer.name or f"{layer.op.cell.lower()}_{place}")


def write_layer(graph: GraphWriter, layer: Layer, asked: Collection[str]) -> None:
    """Write a graph of one node; `asked` are the inputs in addition to X."""
    constants, rows = _constants(layer)
    op = layer.op
    sizes: dict[str, Dimension] = {"T": SEQ_LENGTH, "N": BATCH_SIZE, "I": layer.input_size}
    sizes |= {"D": op.num_directions, "H": op.hidden_size, **rows}

    def shape(key: str) -> list[Dimension]:
        return [sizes[axis] for axis in CANONICAL.axes_of(key)]

    sources = {"X": "X", **{key: graph.constant(key, array) for key, array in constants.items()}}
    for key in ("X", *asked):
        dtype = np.dtype(np.int32) if key == "sequence_lens" else None
        sources[key] = graph.input(key, shape(key), dtype)
    names = {key: key for key in layer.output_names}
    write_node(graph, layer, node_name(graph, layer), sources, names)
    for key in names:
        graph.output(key, shape(key))


def _constants(layer: Layer) -> tuple[dict[str, AnyArray], dict[str, int]]:
    """Return the constants of a layer in ONNX layout, and {"N": batch_size} if there are any."""
    own: dict[str, AnyArray] = {}
    sizes: dict[str, int] = {}
    for key, array in layer.constants.items():
        axes = layer.convention.axes_of(key)
        check.shape(layer.label, layer.convention.name_of(key), array.shape, axes, sizes)
        sizes.update({axis: size for axis, size in zip(axes, array.shape, strict=True) if axis == "N"})
        if key == "sequence_lens":
            own[key] = array.astype(np.int32)
        else:
            own[key] = np.ascontiguousarray(rearrange(array, axes, CANONICAL.axes_of(key)))
    return own, sizes


def _schema_of(layer: Layer, opset: int) -> Schema:
    label, op = layer.label, layer.op
    if type(layer).run is not Layer.run or any(isinstance(weight, Quantized) for weight in layer._kept.values()):
        raise UnsupportedError(
            f"{label}: {type(layer).__name__} computes something else than an operator of ONNX's own; expected a layer "
            "of an RNN, GRU or LSTM"
        )
    definition = schema(op.cell, opset)
    if layer.dtype.name not in definition.dtypes:
        raise UnsupportedError(
            f"{label}: the weights have dtype {layer.dtype}; {definition} (opset {opset}) has "
            f"{', '.join(definition.dtypes)}"
        )
    for name in ("linear_before_reset", "input_forget"):
        if getattr(op, name) and name not in definition.attributes:
            raise UnsupportedError(f"{label}: {name} is True; {definition} (opset {opset}) has no such attribute")
    return definition
