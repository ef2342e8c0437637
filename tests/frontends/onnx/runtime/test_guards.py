"""Scans that ONNX Runtime runs between Guards, compared with onnx's evaluator; some would crash without Guards."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import simple_model

from pyrnnx import PyrnnxError
from pyrnnx.frontends.onnx import Model, read_model

pytest.importorskip("onnxruntime")
node = helper.make_node
FLOAT = onnx.TensorProto.FLOAT
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
CONSTANTS = {"flat": np.array([-1]), "zero": np.array([0]), "two": np.array([2]), "none": np.ones((0, 4), np.float32)}
# What a step makes of the state `s` and of a part `a` of x: the next state `t`, and the result `p`.
STATES = {
    "same": node("Identity", ["s"], ["t"]),
    "sum": node("Add", ["s", "a"], ["t"]),
    "flat": node("Reshape", ["s", "flat"], ["t"]),
    "fewer rows": node("Slice", ["s", "zero", "two"], ["t"]),
    "more rows": node("Concat", ["s", "a"], ["t"], axis=0),
    "no rows": node("Identity", ["none"], ["t"]),
}
RESULTS = {
    "negative": node("Neg", ["a"], ["p"]),
    "state": node("Identity", ["s"], ["p"]),
    "no rows": node("Slice", ["a", "zero", "zero"], ["p"]),
    "flat": node("Reshape", ["a", "flat"], ["p"]),
}


def scan_model(state: str, result: str, ranks: tuple[int, int], axes: tuple[int, int], inputs: Any, count: int) -> Any:
    takes = [helper.make_tensor_value_info(name, FLOAT, None) for name in "sa"]
    gives = [
        helper.make_tensor_value_info(name, FLOAT, [f"{name}{k}" for k in range(rank)])
        for name, rank in zip("tp", ranks, strict=True)
    ]
    body = helper.make_graph([STATES[state], RESULTS[result]], "body", takes, gives)
    attributes: dict[str, Any] = {"num_scan_inputs": 1, "scan_input_axes": [axes[0]], "scan_output_axes": [axes[1]]}
    scan = node("Scan", ["h", "some"], ["last", "y"], body=body, **attributes)
    # A call passes arrays with elements; Slice makes empty ones of them within the session.
    rows = node("Slice", ["x", "zero", "rows"], ["some"])
    return simple_model([rows, scan], inputs, ["last", "y"], {**CONSTANTS, "rows": np.array([count])})


def results_of(model: Model, inputs: dict[str, Any]) -> Any:
    try:
        return list(model(inputs).values())
    except PyrnnxError as error:
        return error


RANKS = [(2, 2), (1, 2), (3, 2), (2, 1), (1, 1), (0, 0)]
AXES = [(0, 0), (1, 0), (0, 1), (-1, -1)]
ALL = list(itertools.product(STATES, [0, 1, 2], RESULTS, RANKS, AXES))
# ONNX Runtime ends the process for these unless ranks of states are checked, and that values have elements.
FATAL = [
    ("flat", 2, "negative", (1, 2), (0, 0)),
    ("same", 0, "flat", (2, 1), (-1, -1)),
    ("same", 2, "no rows", (2, 2), (0, 1)),
]


def check_beside_the_evaluator(rows: list[Any]) -> None:
    """Compare values, or that both are errors, whatever ranks a body declares."""
    for case in rows:
        state, count, result, ranks, axes = case
        inputs = {"h": np.ones((3, 4), np.float32), "x": np.moveaxis(X, 0, axes[0])}
        proto = scan_model(state, result, ranks, axes, inputs, count)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = results_of(read_model(proto, runtime="reference"), inputs)
            results = results_of(read_model(proto), inputs)
        assert isinstance(results, PyrnnxError) == isinstance(expected, PyrnnxError), (case, results, expected)
        for one, wanted in zip(results, expected, strict=True) if isinstance(expected, list) else ():
            np.testing.assert_array_equal(one, wanted, err_msg=str(case))


def test_scans_beside_the_evaluator() -> None:
    check_beside_the_evaluator(FATAL + ALL[::41])


@pytest.mark.slow
def test_all_scans_beside_the_evaluator() -> None:
    check_beside_the_evaluator(ALL)
