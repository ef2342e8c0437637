"""Layers and whole models written as IR: the .xml, and the .bin beside it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyrnnx import model as base
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.files import write_files
from pyrnnx.layer import Layer
from pyrnnx.stack import Stack

from .ir.writer import NetWriter
from .layer_writer import check_layer, layer_net
from .layers import IRLayer
from .model import Model, read_model

_MODELS = (bytes, bytearray, memoryview, base.Model)


def write_model(source: Any, path: str | os.PathLike[str]) -> Path:
    """A layer, a stack or a whole model as IR: the .xml at `path`, and its weights in the .bin beside it.

    Parameters
    ----------
    source : Layer, Stack, Model, path, bytes or onnx.ModelProto
        A layer with its weights: of ONNX (`from_node`), of OpenVINO (`IRLayer.bind`, or of a model), or of the core;
        or a stack, which is written as the ONNX model that `pyrnnx.frontends.onnx.write_model` makes of it; or a whole
        ONNX model, as a path, bytes, a ModelProto or what `pyrnnx.frontends.onnx.read_model` gives; or an
        IR, as a path that ends in .xml or as a `Model`, which is written as `to_onnx` exports it.
    path : str or os.PathLike
        Of the .xml. Existing files are replaced, each at once: an error leaves neither half-written.

    Returns
    -------
    pathlib.Path
        Of the .xml.

    Raises
    ------
    PyrnnxError
        Of a layer as of `write_layer`; a layer without weights; constant inputs of a node that do not fit the layer; a
        path that does not end in .xml or cannot be written. Of a model the same for each of its layers; a node whose
        operator, attribute or form is not written, or whose type and rank ONNX's shape inference does not tell: an
        UnsupportedError that names it; what `read_model` and `to_onnx` reject.

    Notes
    -----
    Weights are written in their dtype, as they were given; B is summed in it, and zero where there is none. Of an ONNX
    layer with input_forget (f = 1 - i), the weights of i are written negated as those of f, and zeros as those of i:
    LSTMSequence-1 has i = 1 - f. A layer of an ONNX node asks only for what the node has an input for: constants of the
    node become constants, and lengths or states that it lacks are computed, full and zero.

    The inputs of a layer's IR are X, H, C (LSTM) and sequence_lengths, its results Y (not of a cell), Ho and Co (LSTM),
    of these names and in this order; batch_size and seq_length are dynamic. IR is batch-major: with an ONNX layer of
    layout 0, X = X.transpose(1, 0, 2) and H = initial_h.transpose(1, 0, 2); Y.transpose(2, 1, 0, 3) and
    Ho.transpose(1, 0, 2) are its outputs. With layout 1 only Y differs: Y.transpose(0, 2, 1, 3).

    A stack asks for X alone. For more inputs, write ``pyrnnx.frontends.onnx.write_model(stack, inputs=...)``.

    A model keeps the names and shapes of its inputs and outputs; dimensions without a size are dynamic. Constants are
    folded, inputs with a default are constants, and Transposes that cancel are left out. Written are RNN, GRU and LSTM
    with constant weights and the operators of `frontends/openvino/writing/operations`: those that exports of PyTorch
    put around such layers, in inference. Variables of an IR become inputs, without their first values, and outputs.

    OpenVINO's CPU plugin ignores sequence_lengths while a dimension of X is dynamic: fix the shapes
    (``model.reshape``) where rows are of different lengths. It ignores P and input_forget of LSTMCell-1, and does not
    read LSTMSequence-1.
    """
    label, make = _source(source)
    target = _target(label, path)
    net = make()
    write_files(label, {target.with_suffix(".bin"): net.weights(), target: [net.xml()]})
    return target


def _source(source: Any) -> tuple[str, Callable[[], NetWriter]]:
    """How errors name what is written, and what makes the net of it."""
    if isinstance(source, (Layer, IRLayer)):
        layer = check_layer("write_model", source)
        if isinstance(layer, IRLayer):
            raise ArgumentError(f"{layer.label}: the layer has no weights; expected one with them, as layer.bind gives")
        return layer.label, lambda: layer_net(layer)
    if isinstance(source, Stack):
        from .writing import model_net, onnx_model, onnx_of_stack

        return source.label, lambda: model_net(onnx_model(onnx_of_stack(source), source.label))
    suffix = Path(source).suffix.lower() if isinstance(source, (str, os.PathLike)) else ""
    if suffix == ".xml":
        source = read_model(source)
    is_proto = type(source).__name__ == "ModelProto"  # of onnx, which need not be imported
    if suffix not in (".onnx", ".xml") and not is_proto and not isinstance(source, _MODELS):
        raise ArgumentError(
            f"write_model: {type(source).__name__} was given; expected a recurrent layer with its weights, a Stack, "
            "a model, the path of an .onnx or .xml, the bytes of an ONNX model, or an onnx.ModelProto"
        )
    from .writing import model_net, onnx_model

    if isinstance(source, Model):
        return source.label, lambda: model_net(onnx_model(_with_inputs(source._export()), source.label))
    model = onnx_model(source)
    return model.label, lambda: model_net(model)


def _with_inputs(proto: Any) -> Any:
    """An exported IR whose variables are inputs without the first values that they have there as defaults."""
    inputs = {one.name for one in proto.graph.input}
    kept = [one for one in proto.graph.initializer if one.name not in inputs]
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(kept)
    return proto


def _target(label: str, path: Any) -> Path:
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise ArgumentError(f"{label}: path is {shown(path)}; expected the path of an .xml")
    target = Path(path)
    if target.suffix != ".xml":
        raise ArgumentError(f"{label}: path is {shown(os.fspath(path))}; expected a name that ends in .xml")
    return target
