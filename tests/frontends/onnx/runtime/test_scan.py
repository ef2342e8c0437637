"""Scans without recurrent operators: any axes, directions and numbers of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import make_graph, simple_model
from whole_models import check_calls

from pyrnnx import PyrnnxError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.runtime.session import is_installed
from pyrnnx.testing.numbers import Array

node = helper.make_node
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ZERO = {"zero": np.array([0])}


def scan(inputs: Sequence[str], outputs: Sequence[str], nodes: Sequence[Any], shape: Any, **attributes: Any) -> Any:
    """Its body takes `a`, `b`, ... and gives `p`, `q`, ..., of which `shape` is declared."""
    takes = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in "ab"[: len(inputs)]]
    gives = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in "pq"[: len(outputs)]]
    body = helper.make_graph(list(nodes), "body", takes, gives)
    return node("Scan", inputs, outputs, body=body, num_scan_inputs=len(inputs), name="scan", **attributes)


# Axes and directions of both scanned inputs and both results.
ATTRIBUTES: dict[str, dict[str, list[int]]] = {
    "as they are": {},
    "inputs along the first and last axis": {"scan_input_axes": [0, -1]},
    "inputs along axes counted from the last": {"scan_input_axes": [-3, -2]},
    "results along the first and last axis": {"scan_output_axes": [0, -1]},
    "results along others": {"scan_output_axes": [1, -2]},
    "backwards": {"scan_input_directions": [0, 1], "scan_output_directions": [1, 0]},
    "all": {
        "scan_input_axes": [1, 2],
        "scan_output_axes": [-1, 1],
        "scan_input_directions": [1, 0],
        "scan_output_directions": [1, 1],
    },
}


def expected(X: Array, Z: Array, attributes: dict[str, list[int]]) -> list[Array]:
    """a + b and a * b of each step."""
    given = {name: attributes.get(name, [0, 0]) for name in ("scan_input_axes", "scan_output_axes")}
    reverse = [attributes.get(f"scan_{kind}_directions", [0, 0]) for kind in ("input", "output")]
    a, b = (
        np.flip(np.moveaxis(one, axis, 0), 0) if back else np.moveaxis(one, axis, 0)
        for one, axis, back in zip((X, Z), given["scan_input_axes"], reverse[0], strict=True)
    )
    found = zip((a + b, a * b), given["scan_output_axes"], reverse[1], strict=True)
    return [np.moveaxis(np.flip(one, 0) if back else one, 0, axis) for one, axis, back in found]


@pytest.mark.parametrize("runtime", ["auto", "reference"])
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_axes_and_directions(name: str, runtime: str) -> None:
    attributes = ATTRIBUTES[name]
    sources = [np.linspace(k, k + 1, 12, dtype=np.float32).reshape(3, 2, 2) for k in range(2)]
    given = [
        np.moveaxis(one, 0, axis) for one, axis in zip(sources, attributes.get("scan_input_axes", (0, 0)), strict=True)
    ]
    body = [node("Add", ["a", "b"], ["p"]), node("Mul", ["a", "b"], ["q"])]
    proto = simple_model(
        [scan(["x", "z"], ["s", "m"], body, [2, 2], **attributes)], {"x": given[0], "z": given[1]}, ["s", "m"]
    )
    results = read_model(proto, runtime=runtime)(*given).values()
    for result, one in zip(results, expected(given[0], given[1], attributes), strict=True):
        np.testing.assert_allclose(result, one, rtol=1e-6)


@pytest.mark.parametrize("runtime", ["auto", "reference"])
@pytest.mark.parametrize("recurrent", [False, True], ids=["", "around a recurrent operator"])
def test_no_steps(recurrent: bool, runtime: str) -> None:
    weights = {"W": np.ones((1, 5, 4), np.float32), "R": np.ones((1, 5, 5), np.float32)}
    body = [node("Neg", ["a"], ["p"])]
    if recurrent:
        body = [node("RNN", ["a", "W", "R"], ["", "h"], hidden_size=5), node("Squeeze", ["h", "zero"], ["p"])]
    shape = [3, 5] if recurrent else [2, 3, 4]
    made = scan(["x"], ["y"], body, shape, scan_output_axes=[1])
    model = read_model(simple_model([made], {"x": X[None]}, ["y"], weights | ZERO), runtime=runtime)
    assert model(X[None])["y"].shape == (shape[0], 1, *shape[1:])
    assert model(X[None][:0])["y"].shape == (shape[0], 0, *shape[1:])


# Axes of the scanned input and of the result, of three each; rows of the input.
INNER: dict[str, tuple[int, int, int]] = {
    "into the axis between": (0, 1, 3),
    "along the axis between": (1, 0, 3),
    "along that of nothing": (1, 0, 0),
    "the first": (0, 0, 3),
    "the last": (-1, -1, 3),
}


@pytest.mark.parametrize("declared", [None, ["m", "n"], ["n"], [3, 4]], ids=str)
@pytest.mark.parametrize("inside", [False, True], ids=["", "in a branch"])
@pytest.mark.parametrize("name", INNER)
def test_scans_that_end_onnx_runtime(name: str, inside: bool, declared: Any) -> None:
    """Check empty values along an axis between the first and the last, with ranks that are declared rightly or not."""
    pytest.importorskip("onnxruntime")
    axis, axis_out, rows = INNER[name]
    nodes = [
        node("Slice", ["x", "zero", "rows"], ["some"]),
        scan(
            ["some"],
            ["y"],
            [node("Slice", ["a", "zero", "zero"], ["p"])],
            declared,
            scan_input_axes=[axis],
            scan_output_axes=[axis_out],
        ),
    ]
    given = {"x": np.moveaxis(X, 1, 0)}
    if inside:
        bodies: dict[str, Any] = {f"{name}_branch": make_graph(nodes, {}, ["y"]) for name in ("then", "else")}
        nodes = [node("If", ["go"], ["y"], **bodies)]
        given["go"] = np.array(True)
    model = read_model(simple_model(nodes, given, ["y"], {**ZERO, "rows": np.array([rows])}))
    assert ("reference evaluator" in {row[0] for row in model.plan.rows()}) is (declared is None)
    steps = np.moveaxis(given["x"][:rows], axis, 0)[:, :0]
    assert model(given)["y"].shape == np.moveaxis(steps, 0, axis_out).shape


def with_states(body: Sequence[Any], declared: Any, opset: int = 17) -> Any:
    """A Scan of x with the state h; its body takes `s` and `a`, and gives `t`, declared so, and `p`."""
    FLOAT = onnx.TensorProto.FLOAT
    takes = [helper.make_tensor_value_info(name, FLOAT, None) for name in "sa"]
    gives = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in (("t", declared), ("p", ["m", "n"]))]
    inner = helper.make_graph(list(body), "body", takes, gives)
    made = node("Scan", ["h", "x"], ["hs", "y"], body=inner, num_scan_inputs=1, name="scan")
    return simple_model([made], {"h": X[0], "x": X}, ["y", "hs"], {"flat": np.array([-1])}, opset)


@pytest.mark.parametrize("declared", [["n"], [12], [1], None, [3, 4]])
def test_a_state_that_gets_another_shape(declared: Any) -> None:
    """ONNX Runtime would end the process."""
    proto = with_states([node("Reshape", ["s", "flat"], ["t"]), node("Neg", ["a"], ["p"])], declared)

    def expected(given: Any) -> list[Array]:
        return [-given["x"], given["h"].ravel()]

    inputs = {"h": X[0], "x": X}
    check_calls(read_model(proto), expected, inputs, {"h": X[0, :2], "x": X[:, :2]}, {"h": X[0], "x": X[:1]})


def test_states() -> None:
    proto = with_states([node("Add", ["s", "a"], ["t"]), node("Mul", ["s", "a"], ["p"])], ["m", "n"])
    model = read_model(proto, runtime="onnxruntime" if is_installed() else None)

    def expected(given: Any) -> list[Array]:
        states = given["h"] + np.cumsum(given["x"], axis=0) - given["x"]
        return [states * given["x"], given["h"] + given["x"].sum(axis=0)]

    check_calls(model, expected, {"h": X[0], "x": X / 24}, {"h": X[0, :1], "x": X[:, :1] / 24})


# Scan-8

LENGTHS = np.array([2, 0, 3, 1])


def rows_of_scans(given: Any, reverse: bool) -> list[Array]:
    """Cumulative sums of each row, and their last ones."""
    x, h = given["x"], given["h"]
    lengths = given.get("lengths", np.full(len(x), x.shape[1]))
    y, last = np.zeros_like(x), h.copy()
    for row, length in enumerate(lengths):
        steps = x[row, :length]
        y[row, :length] = h[row] + np.cumsum(steps[::-1] if reverse else steps, axis=0)
        last[row] += steps.sum(axis=0)
    return [last, y]


@pytest.mark.parametrize("runtime", ["auto", "reference"])
@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "backward"])
@pytest.mark.parametrize("lengths", [False, True], ids=["", "with lengths"])
def test_scan_8(lengths: bool, reverse: bool, runtime: str) -> None:
    body = make_graph([node("Add", ["s", "a"], ["t"]), node("Identity", ["t"], ["p"])], {}, ["t", "p"])
    body.input.extend(helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2]) for name in "sa")
    for one in body.output:
        one.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    names = ["lengths" if lengths else "", "h", "x"]
    made = node("Scan", names, ["last", "y"], body=body, num_scan_inputs=1, directions=[int(reverse)])
    x = np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 3, 2)
    given = {"h": x[:, 0], "x": x} | ({"lengths": LENGTHS} if lengths else {})
    proto = simple_model([made], given, ["last", "y"], opset=8, ir_version=3)
    other = {name: np.ones((2, *array.shape[1:]), array.dtype) for name, array in given.items()}
    check_calls(read_model(proto, runtime=runtime), lambda one: rows_of_scans(one, reverse), given, other)
    if lengths:
        with pytest.raises(PyrnnxError, match=r"sequence_lens is .*; expected 4 from 0 to 3"):
            read_model(proto, runtime=runtime)(given | {"lengths": LENGTHS + 1})
