"""Programs: errors of Python functions that a session calls."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import simple_model

import pyrnnx
from pyrnnx import ArgumentError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.runtime.evaluator import Evaluator

pytest.importorskip("onnxruntime")
node = helper.make_node


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Let the function that a session calls raise something, once."""

    def patch(error: BaseException) -> None:
        original, errors = Evaluator.run, [error]

        def run(self: Any, *arguments: Any) -> Any:
            if errors:
                raise errors.pop()
            return original(self, *arguments)

        monkeypatch.setattr(Evaluator, "run", run)

    return patch


def wide_selu() -> Any:
    """A model whose Selu, of float64, is a function in the session."""
    nodes = [node("Selu", ["x"], ["a"]), node("Neg", ["a"], ["y"])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = read_model(simple_model(nodes, {"x": np.ones(3)}, ["y"]))
        assert model.plan.rows()[0][1] == "Neg"
    return model


def test_other_errors_of_functions_lead_to_the_evaluator(raising: Callable[[BaseException], None]) -> None:
    model = wide_selu()
    wanted = model(np.ones(3))["y"]
    raising(TypeError("an odd result"))
    with pytest.warns(pyrnnx.SlowRuntimeWarning, match="an odd result"):
        np.testing.assert_array_equal(model(np.ones(3))["y"], wanted)


def test_signals_and_memory_errors_of_functions(raising: Callable[[BaseException], None]) -> None:
    model = wide_selu()
    raising(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        model(np.ones(3))
    raising(MemoryError("the outputs exceed memory"))
    with pytest.raises(ArgumentError, match=r"^ONNX model: the outputs exceed memory"):
        model(np.ones(3))
    assert model(np.ones(3))["y"].shape == (3,)
