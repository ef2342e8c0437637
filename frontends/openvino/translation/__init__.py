"""IR to ONNX: one function per operation in the modules here, in one table by type and first opset."""

from .constants import constant_layers, constant_value
from .translate import Translated, export, translate

__all__ = ["Translated", "constant_layers", "constant_value", "export", "translate"]
