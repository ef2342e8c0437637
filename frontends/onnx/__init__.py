"""The ONNX operators RNN, GRU and LSTM of every opset, by their ONNX names, and whole ONNX models."""

from pyrnnx.frontends.onnx.evaluator_ops import reference_ops
from pyrnnx.frontends.onnx.model import Model, read_model
from pyrnnx.frontends.onnx.node import NodeLayer, UnboundNode, from_node
from pyrnnx.frontends.onnx.operators import gru, lstm, rnn
from pyrnnx.frontends.onnx.schemas import SCHEMAS, Schema, schema

__all__ = [
    # operators
    "gru",
    "lstm",
    "rnn",
    # nodes
    "NodeLayer",
    "UnboundNode",
    "from_node",
    # models
    "Model",
    "read_model",
    "reference_ops",
    # what each opset has
    "SCHEMAS",
    "Schema",
    "schema",
]
