"""The ONNX operators RNN, GRU and LSTM of every opset, by their ONNX names, and whole ONNX models."""

from .model import Model, read_model
from .operators.functions import gru, lstm, rnn
from .operators.layers import NodeLayer, UnboundNode, from_node
from .operators.reference_ops import reference_ops
from .operators.schemas import SCHEMAS, Schema, schema
from .writing.write import write_model

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
    "write_model",
    # what each opset has
    "SCHEMAS",
    "Schema",
    "schema",
]
