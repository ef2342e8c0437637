"""OpenVINO as a runtime."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx.testing.cases import OUTPUTS, Case
from pyrnnx.testing.ir_models import ELEMENT_TYPES, make_ir
from pyrnnx.testing.numbers import Array, numpy_dtype
from pyrnnx.testing.runtimes.base import Outputs, PackageRuntime

# float32 even if the processor has faster, coarser types, so that results are comparable between machines.
OPTIONS = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}


class OpenVINO(PackageRuntime):
    """Its CPU plugin, on one thread: ONNX's operators by its import, its own operations as an IR of one layer."""

    name, package = "OpenVINO", "openvino"

    def supports(self, case: Case) -> bool:
        return True

    def load(self) -> None:
        importlib.import_module("openvino").Core().get_property("CPU", "FULL_DEVICE_NAME")  # loads the plugin
        importlib.import_module("pyrnnx.testing.onnx_models")

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        import openvino

        core = openvino.Core()
        if case.family == "ONNX":
            from pyrnnx.testing.onnx_models import make_model

            model = core.read_model(make_model(case, arrays).SerializeToString())
        else:
            model = core.read_model(make_ir(case, arrays).encode(), b"")
        request = core.compile_model(model, "CPU", OPTIONS).create_infer_request()
        names = {name for port in model.inputs for name in port.names}  # without unused ones, which OpenVINO removes
        for name, array in ((name, array) for name, array in arrays.items() if name in names):
            tensor = openvino.Tensor(getattr(openvino.Type, ELEMENT_TYPES[array.dtype.name]), array.shape)
            tensor.data[...] = array.view(tensor.data.dtype)  # bfloat16 is to its API so many bits
            request.set_tensor(name, tensor)
        request.infer()
        return tuple(_to_array(request.get_tensor(name)) for name in OUTPUTS[case.operator])


def _to_array(tensor: Any) -> Array:
    array = np.array(tensor.data)
    return array.view(numpy_dtype("bfloat16")) if tensor.element_type.get_type_name() == "bf16" else array
