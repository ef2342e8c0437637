"""Front-ends: each turns its format into `RecurrentOp`s and arrays, and gives results back in its own arrangement."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

__all__ = ["keras", "onnx", "openvino", "torch"]

if TYPE_CHECKING:
    from pyrnnx.frontends import keras, onnx, openvino, torch  # what __getattr__ gives, for type checkers
else:

    def __getattr__(name: str) -> Any:
        """Each is imported when it is first asked for."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return _import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return __all__
