"""The OpenVINO recurrent operations by their conventions: functions, and layers read from XML."""

from pyrnnx.frontends.openvino.functions import (
    gru_cell,
    gru_sequence,
    lstm_cell,
    lstm_sequence,
    rnn_cell,
    rnn_sequence,
)
from pyrnnx.frontends.openvino.layer import BoundLayer, IRLayer, Port
from pyrnnx.frontends.openvino.operations import OPERATIONS, Operation
from pyrnnx.frontends.openvino.reader import read_layer

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
    # what each operation has
    "OPERATIONS",
    "Operation",
]
