"""Export of OpenVINO models and layers to ONNX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrnnx.errors import ArgumentError, shortened
from pyrnnx.layers.layer import Layer
from pyrnnx.models import model as base

from .ir.xml import source_path
from .layer_writer import layer_net
from .layers import IRLayer
from .model import Model
from .model_reader import read_model

if TYPE_CHECKING:
    from onnx import ModelProto


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
    if isinstance(model, IRLayer):
        raise ArgumentError(
            f"to_onnx: {model.label} has no weights; expected a Model, a path, or a layer with weights, as layer.bind "
            "returns"
        )
    if isinstance(model, Layer):
        net = layer_net(model)
        model = read_model(net.xml(), b"".join(net.weights()))
    elif source_path(model) is not None:
        model = read_model(model)
    if isinstance(model, base.Model) and not isinstance(model, Model):
        raise ArgumentError(f"to_onnx: {shortened(model.label)} is an ONNX model already; its ModelProto is `proto`")
    if not isinstance(model, Model):
        raise ArgumentError(
            f"to_onnx: {type(model).__name__} was given; expected a Model, as read_model returns, the path of an .xml, "
            "or a layer with its weights"
        )
    return model._export()
