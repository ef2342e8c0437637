"""Public entry points of pyrnnx as a runtime."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from pyrnnx.testing.cases import Case
from pyrnnx.testing.ir_models import make_ir
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes.base import PackageRuntime

FUNCTIONS = {
    "RNNSequence": "rnn_sequence",
    "GRUSequence": "gru_sequence",
    "LSTMSequence": "lstm_sequence",
    "RNNCell": "rnn_cell",
    "GRUCell": "gru_cell",
    "LSTMCell": "lstm_cell",
}


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
        function = getattr(importlib.import_module("pyrnnx.frontends.openvino"), FUNCTIONS[operation])
        # only LSTMs have an older version; their functions take an opset
        first = {"opset": 1} if operation.startswith("LSTM") and version == "1" else {}
        return function(**arrays, **case.attributes, **first)


class PyrnnxModels(PackageRuntime):
    """`pyrnnx.load` of a model of one node, or of an IR of one layer, as any whole model."""

    name = "pyrnnx.load"
    package = "pyrnnx"

    def supports(self, case: Case) -> bool:
        return True

    def load(self) -> None:
        importlib.import_module("pyrnnx.testing.onnx_models")

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Any:
        import pyrnnx

        if case.family == "ONNX":
            from pyrnnx.testing.onnx_models import make_model

            return pyrnnx.load(make_model(case, arrays))(dict(arrays))
        return pyrnnx.load(make_ir(case, arrays).encode())(dict(arrays))
