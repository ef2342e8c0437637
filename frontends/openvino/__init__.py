"""The OpenVINO recurrent operations by their conventions: functions, layers, and whole models (IR)."""

from pyrnnx.frontends.openvino.functions import (
    gru_cell,
    gru_sequence,
    lstm_cell,
    lstm_sequence,
    rnn_cell,
    rnn_sequence,
)
from pyrnnx.frontends.openvino.layer import BoundLayer, IRLayer, Port
from pyrnnx.frontends.openvino.model import Model, read_model, to_onnx
from pyrnnx.frontends.openvino.net import Net, NetLayer, NetPort, read_net
from pyrnnx.frontends.openvino.operations import OPERATIONS, Operation
from pyrnnx.frontends.openvino.reader import read_layer
from pyrnnx.frontends.openvino.writer import write_layer, write_model

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
    # what each operation has
    "OPERATIONS",
    "Operation",
]
