"""Runtimes that run cases: pyrnnx, its peers, a user's function and a command."""

from pyrnnx.testing.runtimes.base import CrashedError, Outputs, PackageRuntime, RefusedError, Runtime
from pyrnnx.testing.runtimes.execution import Execution, Status, execute
from pyrnnx.testing.runtimes.models import OnnxRuntime, OpenVINO, PyrnnxModels
from pyrnnx.testing.runtimes.own import CommandRuntime, FunctionRuntime
from pyrnnx.testing.runtimes.packages import OnnxEvaluator, PyrnnxFunctions, PyTorch

RUNTIMES: dict[str, Runtime] = {
    "pyrnnx": PyrnnxFunctions(),
    "pyrnnx.load": PyrnnxModels(),
    "onnxruntime": OnnxRuntime(),
    "openvino": OpenVINO(),
    "onnx": OnnxEvaluator(),
    "torch": PyTorch(),
}

__all__ = [
    "CommandRuntime",
    "CrashedError",
    "Execution",
    "FunctionRuntime",
    "Outputs",
    "PackageRuntime",
    "RUNTIMES",
    "RefusedError",
    "Runtime",
    "Status",
    "execute",
]
