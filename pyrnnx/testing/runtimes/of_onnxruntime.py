"""ONNX Runtime as a runtime."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx.testing.cases import OUTPUTS, Case
from pyrnnx.testing.numbers import Array, numpy_dtype
from pyrnnx.testing.runtimes.base import Outputs, PackageRuntime

BFLOAT16 = 16  # of onnx.TensorProto.DataType; not a type of arrays to ONNX Runtime
FATAL = 4  # severity of what it logs


class OnnxRuntime(PackageRuntime):
    """A session of a model of one node, on the CPU and one thread."""

    name, package = "ONNX Runtime", "onnxruntime"

    def load(self) -> None:
        importlib.import_module("onnxruntime")
        importlib.import_module("pyrnnx.testing.onnx_models")

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        import onnxruntime

        from pyrnnx.testing.onnx_models import make_model

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = FATAL
        model = make_model(case, arrays).SerializeToString()
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        inputs = {name: _to_value(onnxruntime.OrtValue, array) for name, array in arrays.items()}
        return tuple(_to_array(value) for value in session.run_with_ort_values(OUTPUTS[case.operator], inputs))


def _to_value(value_type: Any, array: Array) -> Any:
    if array.dtype.name == "bfloat16":
        return value_type.ortvalue_from_numpy_with_onnx_type(array.view(np.uint16), BFLOAT16)
    return value_type.ortvalue_from_numpy(array)


def _to_array(value: Any) -> Array:
    if value.element_type() == BFLOAT16:
        data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
        return np.frombuffer(data, numpy_dtype("bfloat16")).reshape(value.shape())
    array: Array = value.numpy()
    return array
