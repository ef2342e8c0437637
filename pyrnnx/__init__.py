"""Complete, exact and fast recurrent operators (RNN, GRU, LSTM) on a CPU, by the ONNX and the OpenVINO texts."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

# First: how errors of what follows are told; and where the second raises, nothing else can be imported.
from pyrnnx import (
    _process,  # noqa: F401
    _source_tree,  # noqa: F401
)
from pyrnnx._version import __version__
from pyrnnx.comparison import compare
from pyrnnx.comparison.aspects import Difference
from pyrnnx.comparison.layers import Comparison
from pyrnnx.comparison.models import ModelComparison
from pyrnnx.comparison.numbers import Deviation
from pyrnnx.config import (
    get_batch_invariant,
    get_config,
    get_memory_limit,
    get_num_threads,
    set_batch_invariant,
    set_memory_limit,
    set_num_threads,
    show_config,
)
from pyrnnx.conventions import (
    CANONICAL,
    KERAS,
    KERAS_RESET_AFTER,
    ONNX_LAYOUTS,
    OPENVINO_CELL,
    OPENVINO_SEQUENCE,
    TORCH,
    TORCH_BATCH_FIRST,
    TORCH_CELL,
    Convention,
)
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
from pyrnnx.stack import Stack
from pyrnnx.stack_stream import StackStream
from pyrnnx.stream import Stream
from pyrnnx.tensor_info import Interval, TensorInfo

_LATE = {"frontends": None, "score": "scoring"}  # imported when they are first asked for: modules, or names in them

if TYPE_CHECKING:  # what __getattr__ gives, for type checkers
    from pyrnnx import frontends  # noqa: F401
    from pyrnnx.scoring import score
else:

    def __getattr__(name: str) -> Any:
        """The front-ends, and `score`, imported when they are first asked for."""
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = _import_module(f"{__name__}.{_LATE[name] or name}")
        return module if _LATE[name] is None else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})


__all__ = [
    # operators
    "ACTIVATIONS",
    "Activation",
    "Direction",
    "Layer",
    "RecurrentOp",
    "Stack",
    "StackStream",
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
    # data larger than memory
    "score",
    # conventions
    "CANONICAL",
    "Convention",
    "KERAS",
    "KERAS_RESET_AFTER",
    "ONNX_LAYOUTS",
    "OPENVINO_CELL",
    "OPENVINO_SEQUENCE",
    "TORCH",
    "TORCH_BATCH_FIRST",
    "TORCH_CELL",
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
    "get_config",
    "get_memory_limit",
    "get_num_threads",
    "set_batch_invariant",
    "set_memory_limit",
    "set_num_threads",
    "show_config",
    # the package
    "__version__",
]
