"""Complete, exact and fast recurrent operators (RNN, GRU, LSTM) on a CPU, by the ONNX and the OpenVINO texts."""

from pyrnnx import _source_tree  # noqa: F401  # first: where it raises, nothing else can be imported
from pyrnnx._version import __version__
from pyrnnx.comparison import compare
from pyrnnx.comparison.aspects import Difference
from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.models import ModelComparison
from pyrnnx.comparison.numbers import Deviation
from pyrnnx.config import (
    get_batch_invariant,
    get_memory_limit,
    get_num_threads,
    set_batch_invariant,
    set_memory_limit,
    set_num_threads,
    show_config,
)
from pyrnnx.conventions import CANONICAL, ONNX_LAYOUTS, OPENVINO_CELL, OPENVINO_SEQUENCE, Convention
from pyrnnx.errors import (
    ArgumentError,
    FormatError,
    MissingLayerError,
    PyrnnxError,
    PyrnnxWarning,
    SlowRuntimeWarning,
    UnsupportedError,
)
from pyrnnx.layer import Layer
from pyrnnx.load import load
from pyrnnx.model import Model
from pyrnnx.model_layers import Layers
from pyrnnx.model_stream import ModelStream
from pyrnnx.op import ACTIVATIONS, Activation, Direction, RecurrentOp
from pyrnnx.stream import Stream
from pyrnnx.tensor_info import Interval, TensorInfo

__all__ = [
    # operators
    "ACTIVATIONS",
    "Activation",
    "Direction",
    "Layer",
    "RecurrentOp",
    "Stream",
    # models of any format
    "Interval",
    "Layers",
    "Model",
    "ModelStream",
    "TensorInfo",
    "load",
    # two layers or models side by side
    "Comparison",
    "Deviation",
    "Difference",
    "ModelComparison",
    "compare",
    # conventions
    "CANONICAL",
    "Convention",
    "ONNX_LAYOUTS",
    "OPENVINO_CELL",
    "OPENVINO_SEQUENCE",
    # errors
    "ArgumentError",
    "FormatError",
    "MissingLayerError",
    "PyrnnxError",
    "PyrnnxWarning",
    "SlowRuntimeWarning",
    "UnsupportedError",
    # how it runs
    "get_batch_invariant",
    "get_memory_limit",
    "get_num_threads",
    "set_batch_invariant",
    "set_memory_limit",
    "set_num_threads",
    "show_config",
    # the package
    "__version__",
]
