"""Nodes that ONNX Runtime must not get, and nodes of the same operators that it may get."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import make_graph, simple_model
from whole_models import check_calls, onnxruntime_witness

from pyrnnx import PyrnnxError
from pyrnnx.frontends.onnx import read_model
from pyrnnx.frontends.onnx.runtime.excluded import EXCLUDED, reason_against
from pyrnnx.frontends.onnx.runtime.guards import FIRST_INPUTS
from pyrnnx.testing.numbers import Array

pytest.importorskip("onnxruntime")
node = helper.make_node
ORT, SLOW = "ONNX Runtime", "reference evaluator"

ALIGNED = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
IMAGE = np.array([[[[1, 2, 3, 4]]]], np.float32)
BYTES = np.array([[[[3, 1, 2, 5]]]], np.uint8)
KERNEL = np.array([[[[1, 2]]]], np.uint8)
ONE, ZERO = np.array(1, np.float32), np.array(0, np.uint8)
QUANTIZED = [BYTES, ONE, ZERO, KERNEL, ONE, ZERO, ONE, ZERO]
PLACES = np.array([[[[1, 2, 5, 7]]]])
PARTS = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
WAVE, HANN = np.sin(np.arange(16, dtype=np.float32)).reshape(1, 16, 1), np.hanning(4).astype(np.float32)
FIVE = np.arange(5, dtype=np.float32)


def scales(last: float) -> Array:
    return np.array([1, 1, 1, last], np.float32)


# Operator; inputs, and how many of them are no constants; attributes; who runs it; the result, where it is one alone.
CASES: dict[str, tuple[str, list[Any], int, dict[str, Any], str, Any]] = {
    "Attention": ("Attention", [np.ones((1, 2, 3, 4), np.float32)] * 3, 3, {}, SLOW, np.ones(24)),
    "DFT": ("DFT", [np.ones((1, 2, 1), np.float32), None, np.array(1)], 1, {}, SLOW, [2, 0, 0, 0]),
    "STFT of a given step": ("STFT", [FIVE.reshape(1, 5, 1), np.array(2), None, np.array(2)], 2, {}, SLOW, None),
    "STFT": ("STFT", [FIVE.reshape(1, 5, 1), np.array(2), None, np.array(2)], 1, {}, ORT, None),
    "Unique": ("Unique", [FIVE], 1, {}, SLOW, FIVE),
    "TfIdfVectorizer": (
        "TfIdfVectorizer",
        [np.array([2, 3, 2], np.int32)],
        1,
        {
            "mode": "TF",
            "min_gram_length": 1,
            "max_gram_length": 1,
            "max_skip_count": 0,
            "ngram_counts": [0],
            "ngram_indexes": [0, 1],
            "pool_int64s": [2, 3],
        },
        SLOW,
        [2, 1],
    ),
    "GatherND from an axis that is counted from the last": (
        "GatherND",
        [FIVE.reshape(5, 1), np.zeros((5, 1), np.int64)],
        1,
        {"batch_dims": -1},
        SLOW,
        None,
    ),
    "GatherND from an axis that is far beyond the last": (
        "GatherND",
        [FIVE.reshape(5, 1), np.zeros((5, 1), np.int64)],
        1,
        {"batch_dims": 2**63 - 1},
        SLOW,
        None,
    ),
    "GatherND": ("GatherND", [FIVE.reshape(5, 1), np.zeros((5, 1), np.int64)], 1, {"batch_dims": 1}, ORT, FIVE),
    "STFT of a given window": ("STFT", [WAVE, np.array(2), HANN], 3, {}, SLOW, None),
    "STFT with a window": ("STFT", [WAVE, np.array(2), HANN, np.array(4)], 1, {}, ORT, None),
    "ReverseSequence from the last axis": (
        "ReverseSequence",
        [PARTS, np.array([1, 3])],
        2,
        {"batch_axis": -1, "time_axis": 0},
        SLOW,
        [0, 9, 2, 11, 4, 5, 6, 7, 8, 1, 10, 3],
    ),
    "ReverseSequence": (
        "ReverseSequence",
        [PARTS, np.array([1, 3])],
        2,
        {"batch_axis": 1, "time_axis": 0},
        ORT,
        [0, 1, 10, 11, 4, 5, 6, 7, 8, 9, 2, 3],
    ),
    "RandomNormal of one value": ("RandomNormal", [], 0, {"shape": [2], "mean": 3.0, "scale": 0.0}, SLOW, [3, 3]),
    "RandomNormal": ("RandomNormal", [], 0, {"shape": [2], "mean": 3.0, "scale": 1e-12}, ORT, [3, 3]),
    "RandomNormalLike of one value": ("RandomNormalLike", [FIVE], 1, {"scale": 0.0}, SLOW, np.zeros(5)),
    "RandomUniform of NaN": ("RandomUniform", [], 0, {"shape": [2], "high": np.nan}, SLOW, None),
    "RandomUniform": ("RandomUniform", [], 0, {"shape": [2], "low": 1.0}, ORT, [1, 1]),
    "RandomUniformLike from above": ("RandomUniformLike", [FIVE], 1, {"low": 2.0}, SLOW, None),
    "ConvTranspose without groups": ("ConvTranspose", [IMAGE, IMAGE], 1, {"group": 0}, SLOW, None),
    "ConvTranspose": ("ConvTranspose", [IMAGE, IMAGE], 1, {"group": 1}, ORT, [1, 4, 10, 20, 25, 24, 16]),
    "LayerNormalization with a bias without a name": (
        "LayerNormalization",
        [np.array([[1, 3]], np.float32), np.ones(2, np.float32), None],
        1,
        {"epsilon": 0.0},
        ORT,
        [-1, 1],
    ),
    "ConvInteger of given weights": ("ConvInteger", [BYTES, KERNEL], 2, {}, SLOW, [5, 5, 12]),
    "ConvInteger": ("ConvInteger", [BYTES, KERNEL], 1, {}, ORT, [5, 5, 12]),
    "QLinearConv of given weights": ("QLinearConv", QUANTIZED, 8, {}, SLOW, [5, 5, 12]),
    "QLinearConv": ("QLinearConv", QUANTIZED, 1, {}, ORT, [5, 5, 12]),
    "MaxUnpool to a shape": (
        "MaxUnpool",
        [IMAGE, PLACES, np.array([1, 1, 2, 5])],
        2,
        {"kernel_shape": [1, 2], "strides": [1, 2]},
        SLOW,
        None,
    ),
    "MaxUnpool": (
        "MaxUnpool",
        [IMAGE, PLACES],
        2,
        {"kernel_shape": [1, 2], "strides": [1, 2]},
        ORT,
        [0, 1, 2, 0, 0, 3, 0, 4],
    ),
    # Positions are those of the scale given: 4 * 0.6 = 2.4 columns, of which 2 are made.
    "Resize by 0.6": ("Resize", [IMAGE, None, scales(0.6)], 1, ALIGNED, SLOW, [1, 22 / 7]),
    "Resize by 0.75": ("Resize", [IMAGE, None, scales(0.75)], 1, ALIGNED, SLOW, [1, 2.5, 4]),
    "Resize by scales of the call": ("Resize", [IMAGE, None, scales(0.6)], 2, ALIGNED, SLOW, [1, 22 / 7]),
    "Resize by 2": ("Resize", [IMAGE, None, scales(2)], 1, ALIGNED, ORT, np.linspace(1, 4, 8)),
    "Resize to a size": ("Resize", [IMAGE, None, None, np.array([1, 1, 1, 2])], 1, ALIGNED, ORT, [1, 4]),
    "Resize by 0.6, not aligned": ("Resize", [IMAGE, None, scales(0.5)], 1, {"mode": "linear"}, ORT, [1.5, 3.5]),
}


def test_all_have_a_case() -> None:
    kept = {case[0] for case in CASES.values() if case[4] == SLOW}
    assert kept | {"Scan"} == {operator for operator, _, _ in EXCLUDED}


def test_the_page_lists_all() -> None:
    page = (Path(__file__).parents[4] / "docs" / "reliability.md").read_text("utf-8")
    tables = re.findall(r"^\| operator \| (when|checked) \|\n\|---\|---\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    listed = {kind: set(re.findall(r"\w+", re.sub(r" \|.*| and others.*", "", rows))) for kind, rows in tables}
    assert listed["when"] == {"Sum"} | {operator for operator, _, _ in EXCLUDED}
    assert listed["checked"] == {"Scan", *FIRST_INPUTS}


def test_weights_without_axes() -> None:
    for operator, place in (("ConvInteger", 1), ("QLinearConv", 3)):
        names = ["a", "b", "c", "d", "e", "f", "g", "h"][: 2 * place + 2]
        for shape, word in (((), "weights"), ((1, 1), "weights"), ((1, 1, 2), "")):
            reason = reason_against(node(operator, names, ["y"]), {names[place]: np.zeros(shape, np.uint8)})
            assert (word in reason, bool(reason)) == (True, bool(word)), (operator, shape)


def test_frames_that_are_not_positive() -> None:
    """ONNX Runtime would end the process for all but the first three."""
    names, window = ["x", "step", "window", "length"], np.ones(4, np.float32)
    for inputs, values, may_run in (
        (names[:3], {"window": window}, True),
        ([*names[:2], "", "length"], {"length": np.array([4])}, True),
        (names, {"window": window, "length": np.array(4)}, True),
        (names[:3], {}, False),
        (names, {"window": window}, False),
        (names[:3], {"window": window[0, ...]}, False),
        (names[:3], {"window": window[:0]}, False),
        (names[:3], {"window": window[None]}, False),
        ([*names[:2], "", "length"], {"length": np.array(0)}, False),
        ([*names[:2], "", "length"], {"length": np.array([], np.int64)}, False),
        (names[:3], {"window": window, "step": np.array(0)}, False),
    ):
        reason = reason_against(node("STFT", inputs, ["y"]), {"step": np.array(1), **values})
        assert bool(reason) != may_run, (inputs, values)


@pytest.mark.parametrize("name", CASES)
def test_who_runs_it(name: str) -> None:
    operator, arrays, count, attributes, runner, expected = CASES[name]
    named = {f"x{k}": array for k, array in enumerate(arrays) if array is not None}
    names = [f"x{k}" if array is not None else "" for k, array in enumerate(arrays)]
    given = dict(list(named.items())[:count])
    constants = {key: array for key, array in named.items() if key not in given}
    opset = {"Attention": 23, "DFT": 20}.get(operator, 17)
    model = read_model(simple_model([node(operator, names, ["y"], **attributes)], given, ["y"], constants, opset))
    ((who, _, why),) = model.plan.rows()
    assert who == runner
    assert why in ([row[2] for row in EXCLUDED if row[0] == operator] if runner == SLOW else [""])
    if expected is not None:
        np.testing.assert_allclose(np.ravel(model(given)["y"]), np.ravel(expected), rtol=1e-6)


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_scale_for_each_channel_of_a_quantized_convolution(axes: int) -> None:
    """onnx's own operator takes them only for two axes."""
    rng = np.random.default_rng(axes)
    x, w = (rng.integers(0, 99, (*sizes, *[size] * axes), np.uint8) for *sizes, size in ((2, 2, 5), (3, 2, 3)))
    scales, zeros = np.array([0.5, 0.25, 0.125], np.float32), np.array([5, 6, 7], np.uint8)
    constants: dict[str, Any] = {"s": ONE, "z": ZERO, "w": w, "ws": scales, "wz": zeros, "t": np.array(64, np.float32)}
    convolution = node("QLinearConv", ["x", "s", "z", "w", "ws", "wz", "t", "z"], ["y"])
    proto = simple_model([convolution], {"x": x}, ["y"], constants, 17)
    model = read_model(proto, runtime="reference")
    check_calls(model, onnxruntime_witness(proto), {"x": x}, atol=1)  # rounding of halves


CODES: dict[str, Any] = {"scale": np.array(1 / 64, np.float32), "zero": np.array(128, np.uint8)}
CODED = [node("QuantizeLinear", ["t", "scale", "zero"], ["q"]), node("DequantizeLinear", ["q", "scale", "zero"], ["d"])]
MOVED: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "Concat, Transpose": ([node("Concat", ["x", "x"], ["y"], axis=0), node("Transpose", ["y"], ["t"])], {}),
    "Slice, Transpose, Reshape": (
        [
            node("Slice", ["x", "from", "to"], ["y"]),
            node("Transpose", ["y"], ["m"]),
            node("Reshape", ["m", "shape"], ["t"]),
        ],
        {"from": np.array([1]), "to": np.array([9]), "shape": np.array([-1])},
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_outputs_before_a_transpose_that_is_quantized(name: str) -> None:
    """ONNX Runtime's optimizations would round `y` to codes, too."""
    nodes, constants = MOVED[name]
    x = np.random.default_rng(0).uniform(-1, 1, (3, 4)).astype(np.float32)
    proto = simple_model([*nodes, *CODED], {"x": x}, ["y", "d"], CODES | constants)
    check_calls(read_model(proto), onnxruntime_witness(proto), {"x": x}, {"x": x[:2]}, atol=0)


def test_a_dequantized_transpose_that_a_body_captures() -> None:
    """ONNX Runtime's optimizations would end the process."""
    inner = [node("Identity", ["go"], ["on"]), node("Add", ["a", "t2"], ["b"])]
    body = make_graph(inner, {}, ["on", "b"])
    for name, kind, shape in (("k", onnx.TensorProto.INT64, []), ("go", onnx.TensorProto.BOOL, []), ("a", 1, None)):
        body.input.append(helper.make_tensor_value_info(name, kind, shape))
    nodes = [
        node("Identity", ["x"], ["t"]),
        *CODED,
        node("Transpose", ["d"], ["t2"], perm=[0, 1]),
        node("Loop", ["count", "", "d"], ["y"], body=body),
    ]
    x = np.random.default_rng(0).uniform(-1, 1, (3, 4)).astype(np.float32)
    proto = simple_model(nodes, {"x": x}, ["y"], CODES | {"count": np.array(2)})
    check_calls(read_model(proto), onnxruntime_witness(proto), {"x": x}, {"x": x[:2]})


def test_in_bodies_too() -> None:
    then = make_graph([node("Resize", ["x", "", "s"], ["p"], **ALIGNED)], {}, ["p"])
    other = make_graph([node("Identity", ["x"], ["p"])], {}, ["p"])
    choice = node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    model = read_model(simple_model([choice], {"x": IMAGE, "c": np.array(True)}, ["y"], {"s": scales(0.6)}))
    np.testing.assert_allclose(model(IMAGE, np.array(True))["y"].ravel(), [1, 22 / 7], rtol=1e-6)
    ((_, operators, _), (_, what, why)) = model.plan.rows()
    assert operators == "If (Identity, Python)"
    assert what == "Resize (output 'p'), in then_branch of If (output 'y')"
    assert "align_corners" in why


@pytest.mark.parametrize(("operator", "runner"), [("Sum", SLOW), ("Clip", ORT)])
def test_inputs_left_out(operator: str, runner: str) -> None:
    """ONNX Runtime reads missing inputs of an operator with any number of inputs."""
    model = read_model(simple_model([node(operator, ["x", "", "x"], ["y"])], {"x": FIVE[3]}, ["y"]))
    ((who, _, why),) = model.plan.rows()
    assert (who, why) == (runner, "a required input is left out" if runner == SLOW else "")


def test_groups_that_are_not_there() -> None:
    convolution = simple_model([node("ConvTranspose", ["x", "w"], ["y"], group=0)], {"x": IMAGE, "w": IMAGE}, ["y"])
    with pytest.raises(PyrnnxError, match="group is 0; expected 1 or more"):
        read_model(convolution)(IMAGE, IMAGE)


def test_outputs_left_out() -> None:
    """ONNX Runtime writes missing outputs of an operator with any number of outputs."""
    model = read_model(simple_model([node("Split", ["x"], ["", "y"], num_outputs=2)], {"x": FIVE}, ["y"], opset=18))
    ((who, _, why),) = model.plan.rows()
    assert (who, why) == (SLOW, "a required output is left out")
    np.testing.assert_array_equal(model(FIVE)["y"], [3, 4])
    kept = read_model(simple_model([node("MaxPool", ["x"], ["y", ""], kernel_shape=[1, 2])], {"x": IMAGE}, ["y"]))
    assert kept.plan.rows()[0][0] == ORT
