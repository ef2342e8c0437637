"""Translation of IR to ONNX: one function per operation, in a table by type and first opset."""

from .constants import ConstantValues
from .translate import Names, Program, export, program

__all__ = ["ConstantValues", "Names", "Program", "export", "program"]
