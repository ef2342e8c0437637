"""Reference evaluator of the package onnx as a runtime."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from pyrnnx.testing.cases import Case
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes.base import Outputs, PackageRuntime


class OnnxEvaluator(PackageRuntime):
    """`onnx.reference.ReferenceEvaluator` on a model of one node."""

    name = "onnx's evaluator"
    package = "onnx"

    def load(self) -> None:
        importlib.import_module("onnx.reference")
        importlib.import_module("pyrnnx.testing.onnx_models")

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        from onnx.reference import ReferenceEvaluator

        from pyrnnx.testing.onnx_models import make_model

        return tuple(ReferenceEvaluator(make_model(case, arrays)).run(None, dict(arrays)))
