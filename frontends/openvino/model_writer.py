"""Writers of layers and whole models: as IR, an .xml and a .bin, and as ONNX."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.files import is_path
from pyrnnx._internal.writing import write_files
from pyrnnx.errors import ArgumentError, shortened, shown
from pyrnnx.layers.layer import Layer
from pyrnnx.models import model as base
from pyrnnx.stacks.stack import Stack

from .ir.writer import NetWriter
from .ir.xml import source_path
from .layer_writer import check_layer, layer_net
from .layers import IRLayer
from .model import Model
from .model_reader import read_model

if TYPE_CHECKING:
    from onnx import ModelProto

_SOURCES = (bytes, bytearray, memoryview, base.Model, Stack)


def to_onnx(model: Any) -> ModelProto:
    """Return an ONNX model (opset 22) of the same computation.

    Parameters
    ----------
    model : pyrnnx.frontends.openvino.Model, path or Layer
        An IR model or the path of its .xml, or a layer with weights, exported as `write_model` writes it.

    Returns
    -------
    onnx.ModelProto
        Inputs and outputs have the model's names; values and nodes have the names of tensors and layers. A dynamic
        axis k of input X is named "X_dim_k". Equal constants share one initializer. Compressed weights stay compressed,
        with the nodes that expand them, except in recurrent layers. Each variable becomes an input, with a
        default if its first value is known, and an output after the others: "h" and "h_out".

    Raises
    ------
    PyrnnxError
        The argument has another type or lacks weights, `read_model` rejects the file, an operation or option is not
        translated (the message names the layer), weights of a recurrent layer depend on inputs, constants exceed 2 GB,
        or the onnx package is missing.
    """
    if isinstance(model, Layer):
        net = layer_net(model)
        model = read_model(net.xml(), b"".join(net.weights()))
    elif source_path(model) is not None:
        model = read_model(model)
    if not isinstance(model, Model):
        what = f"{type(model).__name__} was given"
        if isinstance(model, IRLayer):
            what = f"{model.label} has no weights; bind them with layer.bind"
        elif isinstance(model, base.Model):
            what = f"{shortened(model.label)} is an ONNX model already, its ModelProto is `proto`"
        raise ArgumentError(
            f"to_onnx: {what}; expected a Model, as read_model returns, the path of an .xml, or a layer with weights"
        )
    return model._export()


def write_model(source: Any, path: str | os.PathLike[str]) -> Path:
    """Write a layer, a stack or a whole model as IR: the .xml at `path`, and the weights in a .bin next to it.

    Parameters
    ----------
    source : Layer, Stack, Model, path, bytes or onnx.ModelProto
        A layer with its weights: of ONNX (`from_node`), of OpenVINO (`IRLayer.bind`, or of a model), or of the core.
        Or a stack, written as the ONNX model that `pyrnnx.frontends.onnx.write_model` builds. Or a whole ONNX model: a
        path, bytes, a ModelProto or a model of `pyrnnx.frontends.onnx.read_model`. Or an IR, the path of an .xml or a
        `Model`, written as `to_onnx` exports it.
    path : str or os.PathLike
        Path of the .xml. Existing files are replaced atomically: an error leaves neither half-written.

    Returns
    -------
    pathlib.Path
        Path of the .xml.

    Raises
    ------
    PyrnnxError
        A layer has no weights, `write_layer` rejects it, or constant inputs of its node do not fit; a path does not end
        in .xml or cannot be written. A model has a node with an unsupported operator, attribute or form, or one whose
        type and rank ONNX's shape inference does not find (the error names the node); or `read_model` or `to_onnx`
        rejects the model.

    Notes
    -----
    Weights are written in their own dtype; B is the sum in that dtype, or zeros. An ONNX layer with input_forget
    (f = 1 - i) becomes LSTMSequence-1, which has i = 1 - f: the negated weights of i are written for f, and zeros for
    i. A layer of an ONNX node has only the inputs of the node. Constants of the node become constants; the IR computes
    lengths and states that the node lacks, as full lengths and zeros.

    The inputs of a layer's IR are X, H, C (LSTM) and sequence_lengths, its results Y (not of a cell), Ho and Co (LSTM),
    in this order; batch_size and seq_length are dynamic. IR is batch-major: with an ONNX layer of layout 0, pass
    X.transpose(1, 0, 2) and initial_h.transpose(1, 0, 2); ONNX's outputs are Y.transpose(2, 1, 0, 3) and
    Ho.transpose(1, 0, 2). With layout 1 only Y differs: Y.transpose(0, 2, 1, 3).

    A stack has the single input X. For more inputs, write ``pyrnnx.frontends.onnx.write_model(stack, inputs=...)``.

    The inputs and outputs of a model have the same names and shapes in the IR; dimensions without a size are dynamic.
    Constants are folded, inputs with a default become constants, and Transposes that cancel are removed. Supported are
    RNN, GRU and LSTM with constant weights and the operators of `frontends/openvino/writing/operations`, which PyTorch
    and Keras export around such layers for inference. If, Loop and Scan become If, Loop and TensorIterator; what does
    not change between iterations stays out of the loop. An If that squeezes an axis if its size is 1 always does: a run
    with another size is an error. Products of 8-bit codes are computed in float32 if that is exact. Variables of an IR
    become inputs, without first values, and outputs.

    OpenVINO's CPU plugin ignores sequence_lengths while a dimension of X is dynamic: fix the shapes
    (``model.reshape``) if rows have different lengths. It ignores P and input_forget of LSTMCell-1, and does not read
    LSTMSequence-1.
    """
    label, build = _source(source)
    target = _target(label, path)
    net = build()
    write_files(label, {target.with_suffix(".bin"): net.weights(), target: [net.xml()]})
    return target


def _source(source: Any) -> tuple[str, Callable[[], NetWriter]]:
    """Return the name of a source in errors, and a function that builds its net."""
    if isinstance(source, (Layer, IRLayer)):
        layer = check_layer("write_model", source)
        if isinstance(layer, IRLayer):
            raise ArgumentError(f"{layer.label}: the layer has no weights; bind them with layer.bind")
        return layer.label, lambda: layer_net(layer)
    suffix = Path(source).suffix.lower() if is_path(source) else ""
    is_proto = type(source).__name__ == "ModelProto"  # by name: onnx may not be installed
    if suffix not in (".onnx", ".xml") and not is_proto and not isinstance(source, _SOURCES):
        what = shown(os.fspath(source)) if suffix else type(source).__name__
        raise ArgumentError(
            f"write_model: {what} was given; expected a recurrent layer with its weights, a Stack, as "
            "pyrnnx.frontends.torch and keras read it, a model, the path of an .onnx or .xml, the bytes of an ONNX "
            "model, or an onnx.ModelProto"
        )
    if suffix == ".xml":
        source = read_model(source)
    from .writing import model_net, onnx_model, onnx_of_stack

    if isinstance(source, Stack):
        return source.label, lambda: model_net(onnx_model(onnx_of_stack(source), source.label))
    if isinstance(source, Model):
        return source.label, lambda: model_net(onnx_model(_with_inputs(source._export()), source.label))
    model = onnx_model(source)
    return model.label, lambda: model_net(model)


def _with_inputs(proto: Any) -> Any:
    """Remove the defaults of inputs from an exported IR: the first values of its variables."""
    inputs = {info.name for info in proto.graph.input}
    constants = [tensor for tensor in proto.graph.initializer if tensor.name not in inputs]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(constants)
    return proto


def _target(label: str, path: Any) -> Path:
    target = Path(path) if is_path(path) else Path()
    if target.suffix != ".xml":
        raise ArgumentError(f"{label}: path is {shown(path)}; expected the path of a file whose name ends in .xml")
    return target
