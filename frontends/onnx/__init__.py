"""The ONNX operators RNN, GRU and LSTM of every opset, by their ONNX names."""

from pyrnnx.frontends.onnx.model import read_node
from pyrnnx.frontends.onnx.node import NodeLayer, from_node
from pyrnnx.frontends.onnx.operators import gru, lstm, rnn
from pyrnnx.frontends.onnx.schemas import SCHEMAS, Schema, schema

__all__ = [
    # operators
    "gru",
    "lstm",
    "rnn",
    # nodes
    "NodeLayer",
    "from_node",
    "read_node",
    # what each opset has
    "SCHEMAS",
    "Schema",
    "schema",
]
