"""OpenVINO front-end: recurrent operations as functions, layers, and whole models (IR)."""

from .functions import (
    gru_cell,
    gru_sequence,
    lstm_cell,
    lstm_sequence,
    rnn_cell,
    rnn_sequence,
)
from .ir.layer import NetLayer
from .ir.ports import NetPort
from .layer_reader import read_layer
from .layer_writer import write_layer
from .layers import BoundLayer, IRLayer, Port
from .model import Model
from .model_reader import read_model
from .model_writer import to_onnx, write_model
from .net import Net, read_net
from .schemas import OPERATIONS, Operation

__all__ = [
    # operations
    "gru_cell",
    "gru_sequence",
    "lstm_cell",
    "lstm_sequence",
    "rnn_cell",
    "rnn_sequence",
    # layers from XML
    "BoundLayer",
    "IRLayer",
    "Port",
    "read_layer",
    # whole models
    "Model",
    "Net",
    "NetLayer",
    "NetPort",
    "read_model",
    "read_net",
    # to other forms
    "to_onnx",
    "write_layer",
    "write_model",
    # table of operations
    "OPERATIONS",
    "Operation",
]
