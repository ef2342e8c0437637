"""Function as a runtime."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Literal

from pyrnnx.errors import ArgumentError, shown
from pyrnnx.testing.cases import Case
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes.base import Outputs, Runtime


class FunctionRuntime(Runtime):
    """A function that computes a case, or runs an ONNX model of one node.

    Test your own runtime::

        mine = FunctionRuntime(lambda model, inputs: my_runtime.load(model).run(inputs), takes="model")
        for execution in execute(mine, CASES):
            print(execution.case.name, execution.status, execution.detail)

    Parameters
    ----------
    function : callable
        `function(case, arrays)`, or with takes="model" `function(model, inputs)`: the bytes of an ONNX model whose
        inputs are all arrays of the case, and these by name. It returns the outputs in the operator's order, or a
        mapping by their names; missing outputs are None or have no entry.
    name : str, optional
        Default: the name of the function.
    takes : "case" or "model"
        A function of models supports only ONNX's operators.

    Raises
    ------
    ArgumentError
        `function` cannot be called, or `takes` is neither.
    """

    def __init__(
        self, function: Callable[..., Any], name: str | None = None, *, takes: Literal["case", "model"] = "case"
    ) -> None:
        if not callable(function):
            raise ArgumentError(f"FunctionRuntime: function is {shown(function)}; expected a callable")
        if takes not in ("case", "model"):
            raise ArgumentError(f"FunctionRuntime: takes is {shown(takes)}; expected 'case' or 'model'")
        self.function = function
        self.name = name or str(getattr(function, "__name__", type(function).__name__))
        self.takes = takes

    def supports(self, case: Case) -> bool:
        return self.takes == "case" or case.family == "ONNX"

    def load(self) -> None:
        if self.takes == "model":
            importlib.import_module("pyrnnx.testing.onnx_models")

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        if self.takes == "case":
            outputs: Outputs = self.function(case, dict(arrays))
        else:
            from pyrnnx.testing.onnx_models import make_model

            outputs = self.function(make_model(case, arrays).SerializeToString(), dict(arrays))
        return outputs
