"""Complete, exact and fast recurrent operators (RNN, GRU, LSTM) of ONNX and OpenVINO on a CPU."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

# Import this first: it raises if nothing else can be imported.
from pyrnnx._internal import source_tree as _source_tree  # noqa: F401
from pyrnnx._version import __version__
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
from pyrnnx.errors import (
    ArgumentError,
    FormatError,
    MissingLayerError,
    PyrnnxError,
    PyrnnxWarning,
    UnsupportedError,
)
from pyrnnx.layers.layer import Layer
from pyrnnx.layers.stream import Stream
from pyrnnx.load import load
from pyrnnx.models.layers import Layers
from pyrnnx.models.model import Model
from pyrnnx.models.stream import ModelStream
from pyrnnx.operator.conventions import (
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
from pyrnnx.operator.op import ACTIVATIONS, Activation, Direction, RecurrentOp
from pyrnnx.operator.tensor_info import Interval, TensorInfo
from pyrnnx.stacks.stack import Stack
from pyrnnx.stacks.stream import StackStream

# Imported when they are first accessed: {name: module that contains it, None for a module}
_LATE = {
    "frontends": None,
    "score": "scoring",
    "compare": "comparison",
    "Comparison": "comparison.layers",
    "Deviation": "comparison.distances",
    "Difference": "comparison.aspects",
    "ModelComparison": "comparison.models",
}

if TYPE_CHECKING:  # type checkers do not read __getattr__
    from pyrnnx import frontends
    from pyrnnx.comparison import compare
    from pyrnnx.comparison.aspects import Difference
    from pyrnnx.comparison.distances import Deviation
    from pyrnnx.comparison.layers import Comparison
    from pyrnnx.comparison.models import ModelComparison
    from pyrnnx.scoring import score
else:

    def __getattr__(name: str) -> Any:
        """Import a name of `_LATE` when it is first accessed, and keep it."""
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = _import_module(f"{__name__}.{_LATE[name] or name}")
        value = module if _LATE[name] is None else getattr(module, name)
        globals()[name] = value
        return value


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
    # comparison of layers or models
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
    "UnsupportedError",
    # configuration
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
    "frontends",
]


def __dir__() -> list[str]:
    return __all__
