"""Writing of whole ONNX models as IR: one function per operator, in a table by name in `operations`."""

from ...onnx.writing.write import write_model as onnx_of_stack
from .source import onnx_model
from .write import model_net

__all__ = ["model_net", "onnx_model", "onnx_of_stack"]
