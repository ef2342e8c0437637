"""OpenCV's module dnn as a runtime."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import numpy as np

from pyrnnx.testing.cases import OUTPUTS, Case
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes.base import Outputs, PackageRuntime


class OpenCV(PackageRuntime):
    """A net read from a model of one node, on one thread; its new engine where that has the operator, as by default."""

    name, package = "OpenCV", "cv2"

    def load(self) -> None:
        importlib.import_module("cv2").setNumThreads(1)
        importlib.import_module("pyrnnx.testing.onnx_models")

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        import cv2

        from pyrnnx.testing.onnx_models import make_model

        net = cv2.dnn.readNetFromONNX(np.frombuffer(make_model(case, arrays).SerializeToString(), np.uint8))
        for name, array in arrays.items():
            net.setInput(array, name)
        layers = net.getUnconnectedOutLayersNames()
        outputs = dict(zip(layers, net.forward(layers), strict=True))
        return tuple(outputs.get(name) for name in OUTPUTS[case.operator])
