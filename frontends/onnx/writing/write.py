"""Layers and stacks written as ONNX models."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrnnx._internal import scalars
from pyrnnx._internal.files import is_path
from pyrnnx._internal.writing import write_files
from pyrnnx.errors import ArgumentError, PyrnnxError, UnsupportedError, shortened, shown
from pyrnnx.layers.layer import CONSTANTS, Layer
from pyrnnx.stacks.stack import Stack

from ..file import model_files
from ..operators.schemas import DEFAULT_OPSET, schema
from .graph import GraphWriter
from .layers import write_layer
from .stacks import write_stack

if TYPE_CHECKING:
    from onnx import ModelProto


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
