"""A model or a layer of OpenVINO as an ONNX model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrnnx import model as base
from pyrnnx.errors import ArgumentError, shortened
from pyrnnx.layer import Layer

from .ir.xml import source_path
from .layer_writer import layer_net
from .layers import IRLayer
from .model import Model, read_model

if TYPE_CHECKING:
    from onnx import ModelProto


def to_onnx(model: Any) -> ModelProto:
    """The ONNX model (opset 22) of the same computation.

    Parameters
    ----------
    model : pyrnnx.frontends.openvino.Model, path or Layer
        What `read_model` gives or takes as a path, or a layer with its weights: of that the model that `write_model`
        writes.

    Returns
    -------
    onnx.ModelProto
        Inputs and outputs with the model's names, values and nodes with those of tensors and layers. Dynamic dimensions
        have names: of the k-th axis of input X "X_dim_k". Constants that are equal are one initializer; compressed
        weights stay as they are, with the nodes that expand them, but those of recurrent layers are expanded. Variables
        are inputs, with a default where what they begin with is known, and outputs, behind the others: "h" and "h_out".

    Raises
    ------
    PyrnnxError
        Something else, or a layer without weights; what `read_model` rejects in a file; an operation, or an option of
        one, that is not translated: named with the layer; constants of more than 2 GB; the onnx package is missing.
    """
    if isinstance(model, IRLayer):
        raise ArgumentError(
            f"to_onnx: {model.label} has no weights; expected a Model, a path, or a layer with weights, as layer.bind "
            "gives"
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
            f"to_onnx: {type(model).__name__} was given; expected a Model, as read_model gives, the path of an .xml, "
            "or a layer with its weights"
        )
    return model._export()
