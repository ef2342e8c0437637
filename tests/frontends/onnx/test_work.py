"""Work that is done once: calls of some functions while a model is read and called, and an operator computed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import simple_model

import pyrnnx.frontends.onnx as frontend

I, H = 3, 4
X = np.ones((5, 2, I), np.float32)
W, R = np.full((1, 4 * H, I), 0.5, np.float32), np.full((1, 4 * H, H), 0.25, np.float32)


@pytest.fixture
def counted() -> Iterator[Callable[[Callable[[], Any]], Counter[str]]]:
    """Return the number of calls of functions of this package, by "module.name"."""
    before = sys.getprofile()

    def count(function: Callable[[], Any]) -> Counter[str]:
        calls: Counter[str] = Counter()

        def seen(frame: FrameType, event: str, argument: Any) -> None:
            path = Path(frame.f_code.co_filename)
            if event == "call" and {"pyrnnx", "frontends"} & set(path.parts):
                calls[f"{path.stem}.{frame.f_code.co_name}"] += 1

        sys.setprofile(seen)
        try:
            function()
        finally:
            sys.setprofile(before)
        return calls

    yield count
    sys.setprofile(before)


def model() -> onnx.ModelProto:
    node = helper.make_node("LSTM", ["x", "W", "R"], ["Y"], hidden_size=H, name="lstm")
    return simple_model([node, helper.make_node("Neg", ["Y"], ["y"])], {"x": X}, ["y"], {"W": W, "R": R})


def test_reading(counted: Callable[[Callable[[], Any]], Counter[str]]) -> None:
    proto = model()
    calls = counted(lambda: frontend.read_model(proto))
    assert [calls[name] for name in ("check.sound_graph", "check.opsets_of", "inline.inlined")] == [1, 1, 1]
    assert [calls[name] for name in ("messages.tensors", "check._check_names")] == [0, 0]


def test_first_call_and_those_after_it(counted: Callable[[Callable[[], Any]], Counter[str]]) -> None:
    ready = frontend.read_model(model())
    first = counted(lambda: ready(X))
    prepared = ("nodes.read_node", "schemas.schema", "check.weights", "rebuild.rebuild")
    assert {name: first[name] for name in prepared} == dict.fromkeys(prepared, 1)
    assert first["check.opsets_of"] == first["types.inferred"] == 0
    second = counted(lambda: ready(X))
    assert {name: second[name] for name in prepared} == dict.fromkeys(prepared, 0)
    # Compiled code recognizes arrays that are exactly as declared.
    assert [(calls["inputs.read"], calls["inputs.read_inputs"]) for calls in (first, second)] == [(1, 0), (1, 0)]
    assert counted(lambda: ready(X.view(np.recarray)))["inputs.read_inputs"] == 1
    by_session = any(runner == "ONNX Runtime" for runner, _, _ in ready.plan.rows())
    assert second["layer.run"] == (0 if by_session else 1)  # in a session, kernels run without Python
    assert not by_session or sum(second.values()) <= 10, second


def test_one_operator(counted: Callable[[Callable[[], Any]], Counter[str]]) -> None:
    calls = counted(lambda: frontend.lstm(X, W, R))
    once = ("schemas.schema", "attributes.read_attributes", "attributes.build_op", "check.weights", "layer.run")
    assert {name: calls[name] for name in once} == dict.fromkeys(once, 1)
    assert calls["check.floating_array"] <= 2  # X, and W among the weights
