"""Python packages as runtimes of single operators."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx.testing.cases import OUTPUTS, Case
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes.base import Outputs, PackageRuntime
from pyrnnx.testing.runtimes.models import ModelPackage


class PyrnnxFunctions(PackageRuntime):
    """The functions of `pyrnnx.frontends.onnx` and `pyrnnx.frontends.openvino`."""

    name = package = "pyrnnx"

    def supports(self, case: Case) -> bool:
        return True

    def load(self) -> None:
        importlib.import_module("pyrnnx.frontends.onnx")
        importlib.import_module("pyrnnx.frontends.openvino")

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Any:
        if case.family == "ONNX":
            function = getattr(importlib.import_module("pyrnnx.frontends.onnx"), case.operator.lower())
            return function(**arrays, **case.attributes, opset=case.opset)
        operation, version = case.operator.split("-")
        name = f"{case.cell}_{operation.removeprefix(case.cell)}".lower()  # LSTMCell: lstm_cell
        function = getattr(importlib.import_module("pyrnnx.frontends.openvino"), name)
        # only LSTMs have an older version; their functions take an opset
        first = {"opset": 1} if operation.startswith("LSTM") and version == "1" else {}
        return function(**arrays, **case.attributes, **first)


class OnnxEvaluator(ModelPackage):
    """`onnx.reference.ReferenceEvaluator`."""

    name, package = "onnx's evaluator", "onnx"

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        import onnx.reference

        model = onnx.ModelProto.FromString(self.model(case, arrays))
        return tuple(onnx.reference.ReferenceEvaluator(model).run(None, dict(arrays)))


class OpenCV(ModelPackage):
    """OpenCV's dnn; its new engine where that has the operator, as by default."""

    name, package = "OpenCV", "cv2"

    def load(self) -> None:
        super().load()
        importlib.import_module("cv2").setNumThreads(1)

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        import cv2

        net = cv2.dnn.readNetFromONNX(np.frombuffer(self.model(case, arrays), np.uint8))
        for name, array in arrays.items():
            net.setInput(array, name)
        layers = net.getUnconnectedOutLayersNames()
        outputs = dict(zip(layers, net.forward(layers), strict=True))
        return tuple(outputs.get(name) for name in OUTPUTS[case.operator])


class Tract(ModelPackage):
    """Sonos' inference engine in Rust."""

    name = package = "tract"

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        import tract

        with tempfile.TemporaryDirectory() as folder:  # it reads files only
            path = Path(folder, "model.onnx")
            path.write_bytes(self.model(case, arrays))
            try:
                model = tract.onnx().load(path).into_model()
                names = [model.input_name(place) for place in range(model.input_count())]
                outputs = model.into_runnable().run([arrays[name] for name in names])
            except tract.TractError as error:  # with a list of causes, and of the functions it was in
                raise RuntimeError(str(error).partition("Stack backtrace")[0]) from None
        return tuple(output.to_numpy() for output in outputs)
