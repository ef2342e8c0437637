"""Size rules compared with results of onnx's node tests, and with values computed by hand."""

from __future__ import annotations

import contextlib
import tracemalloc
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_node_tests import SLOW, only, quick
from rows import each_row

from pyrnnx.frontends.onnx.graph.sizes import rules
from pyrnnx.frontends.onnx.graph.sizes.table import RULES, bytes_beyond, expected_bytes


def value(given: Any) -> Any:
    return numpy_helper.to_array(given) if isinstance(given, onnx.TensorProto) else given


def too_small(modules: list[str]) -> tuple[set[str], dict[str, tuple[int | None, int]]]:
    """The operators that were seen, and tests whose results take more than the rule says and the inputs together."""
    from onnx.backend.test.case.node import collect_testcases

    with only(modules):
        found: list[Any] = collect_testcases(None)
    seen, wrong = set(), {}
    for test in (one for one in found if one.model is not None and len(one.model.graph.node) == 1):
        (node,) = test.model.graph.node
        if node.domain or RULES.get(node.op_type, rules.view) is rules.view:
            continue
        for inputs, outputs in test.data_sets:
            given = dict(zip((one.name for one in test.model.graph.input), map(value, inputs), strict=True))
            arrays = [given[name] if name else None for name in node.input]
            expected = expected_bytes(node, arrays)
            size = sum(one.nbytes for one in map(value, outputs) if isinstance(one, np.ndarray))
            beside = sum(one.nbytes for one in arrays if isinstance(one, np.ndarray))
            seen.add(node.op_type)
            if expected is None or size > expected + beside + 64:  # 64: results of nothing, as by reductions
                wrong[test.name] = expected, size
    return seen, wrong


SOME = {"Col2Im", "DeformConv", "LinearAttention", "QLinearConv", "STFT", "Tile"}


@pytest.mark.filterwarnings("ignore")  # of what onnx computes for its tests
def test_results_of_some_node_tests_take_no_more() -> None:
    seen, wrong = too_small(["col2im", "deformconv", "linear_attention", "qlinearconv", "stft", "tile"])
    assert wrong == {}
    assert seen >= SOME


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_results_of_node_tests_take_no_more() -> None:
    seen, wrong = too_small(quick())
    assert wrong == {}
    assert {"Attention", "Resize", *SOME} <= seen
    assert len(seen) > 150


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_results_of_pooling_take_no_more() -> None:
    seen, wrong = too_small([*SLOW])
    assert wrong == {}
    assert {"AveragePool", "LpPool", "MaxPool"} <= seen


X = np.ones((2, 3, 4, 5), np.float32)
FEW = np.ones((2, 7), np.float32)
BY_HAND: dict[str, tuple[str, list[Any], dict[str, Any], int]] = {  # operator, inputs, attributes, bytes
    "Tile-1": ("Tile", [X, np.array([6.0]), np.array([1.0])], {}, 6 * X.nbytes),
    "Upsample-1": ("Upsample", [X], {"height_scale": 2.0, "width_scale": 3.0}, 9 * X.nbytes),
    "MaxRoiPool": ("MaxRoiPool", [X, np.ones((9, 5), np.float32)], {"pooled_shape": [6, 7]}, 9 * 3 * 6 * 7 * 4),
    "Multinomial": ("Multinomial", [FEW], {"sample_size": 11}, 2 * 11 * 8),
    "RandomNormalLike": ("RandomNormalLike", [FEW], {}, 2 * 7 * 16),
    "a negative number": ("Multinomial", [FEW], {"sample_size": -1}, 0),
    "a sequence": ("ConcatFromSequence", [[X, X]], {"axis": 0}, 2 * X.nbytes),
}


@each_row("name", BY_HAND)
def test_by_hand(name: str) -> None:
    operator, arrays, attributes, expected = BY_HAND[name]
    node = helper.make_node(operator, [f"x{k}" for k in range(len(arrays))], ["y"], **attributes)
    assert expected_bytes(node, arrays) == expected


def ones(*shape: int, dtype: Any = np.float32) -> Any:
    return np.ones(shape, dtype)


def integers(*values: int) -> Any:
    return np.array(values, np.int64)


OVERHEAD = 2**13  # bytes of the evaluator's own objects
N = 2**16
SCALE, ZERO = np.array(0.5, np.float32), np.array(1, np.uint8)
IMAGE, BYTES = ones(1, 1, 64, 64), ones(1, 1, 64, 64, dtype=np.uint8)
REDUCTIONS = [name for name in RULES if name.startswith("Reduce")]
PEAKS: dict[str, tuple[str, list[Any], dict[str, Any]]] = {  # operator, inputs, attributes
    # an empty axis
    **{f"{name}, empty": (name, [ones(0, N), integers(0)], {}) for name in REDUCTIONS},
    "GlobalAveragePool, empty": ("GlobalAveragePool", [ones(N, 1, 0, 1)], {}),
    "Det, empty": ("Det", [ones(N, 0, 0)], {}),
    "BatchNormalization, empty": ("BatchNormalization", [ones(0, N), *[ones(N)] * 4], {"training_mode": 1}),
    "InstanceNormalization, empty": ("InstanceNormalization", [ones(N, 1, 0, 1), ones(1), ones(1)], {}),
    "LayerNormalization, empty": ("LayerNormalization", [ones(N, 0), ones(0)], {}),
    "LpNormalization, empty": ("LpNormalization", [ones(N, 0)], {}),
    "MeanVarianceNormalization, empty": ("MeanVarianceNormalization", [ones(0, N, 1, 1)], {}),
    "RMSNormalization, empty": ("RMSNormalization", [ones(N, 0), ones(0)], {}),
    "SoftmaxCrossEntropyLoss, empty": ("SoftmaxCrossEntropyLoss", [ones(N, 0), ones(0, dtype=int)], {}),
    "ScatterElements, empty": ("ScatterElements", [ones(0, 2**14), ones(0, 2**14, dtype=int), ones(0, 2**14)], {}),
    "TopK, empty": ("TopK", [ones(N, 0), integers(0)], {}),
    "Unique, empty": ("Unique", [ones(0, 2**9)], {"axis": 0}),
    "Conv, empty": ("Conv", [ones(0, 1, N), ones(1, 1, 3)], {}),
    "Gather, int32": ("Gather", [ones(50, 2), np.zeros(20_000, np.int32)], {}),
    "MatMul, strided": ("MatMul", [ones(100, 500)[:, ::2], ones(250, 3)], {}),
    "Gather, strided indices": ("Gather", [ones(3), np.zeros((2, 20_000), int).T], {}),
    "Gather, strided": ("Gather", [ones(300, 300).T, integers(0)], {"axis": 1}),
    "Compress, strided": ("Compress", [ones(300, 300).T, np.ones(300, bool)], {"axis": 1}),
    "ArgMax, strided": ("ArgMax", [ones(300, 300).T], {"axis": 1}),
    "NegativeLogLikelihoodLoss, strided": (
        "NegativeLogLikelihoodLoss",
        [ones(9, 9, 60, 60).T, np.zeros((60, 9, 9), int)],
        {"reduction": "none"},
    ),
    "QuantizeLinear, strided": (
        "QuantizeLinear",
        [ones(200, 200).T, ones(200, 100), np.ones((200, 100), np.uint16)],
        {"axis": 1, "block_size": 2},
    ),
    "DequantizeLinear, blocks": (
        "DequantizeLinear",
        [np.ones((2, 3), np.int8), ones(2, 1), np.zeros((2, 1), np.int8)],
        {"axis": 1, "block_size": 100_000},
    ),
    "QuantizeLinear, broadcast": ("QuantizeLinear", [ones(600, 1), ones(600)], {}),
    "DequantizeLinear, broadcast": ("DequantizeLinear", [np.ones((600, 1), np.int8), ones(600)], {}),
    "DequantizeLinear, zero points": (
        "DequantizeLinear",
        [np.ones((600, 1), np.int8), ones(), np.zeros(600, np.int8)],
        {},
    ),
    "QuantizeLinear, vector": ("QuantizeLinear", [ones(40_000), ones(1)], {}),
    "DFT, truncated": ("DFT", [ones(1, 90_000, 2), integers(100)], {}),
    "Gemm, float16": (
        "Gemm",
        [ones(300, 10, dtype=np.float16), ones(10, 300, dtype=np.float16), ones(300, dtype=np.float16)],
        {"alpha": 0.5, "beta": 0.5},
    ),
    "LayerNormalization, broadcast": ("LayerNormalization", [ones(300, 1), ones(300)], {}),
    "RMSNormalization, broadcast": ("RMSNormalization", [ones(300, 1), ones(300)], {}),
    "LayerNormalization, float16": (
        "LayerNormalization",
        [ones(300, dtype=np.float16), *[ones(400, 1, 1, dtype=np.float16)] * 2],
        {"axis": 0},
    ),
    "Clip, broadcast": ("Clip", [ones(600), ones(600, 1), ones(1, 1)], {}),
    "InstanceNormalization, broadcast": ("InstanceNormalization", [ones(3, 1, 99), ones(300), ones(1)], {}),
    "BatchNormalization, broadcast": ("BatchNormalization", [ones(3, 1, 99), ones(1), ones(300), ones(1), ones(1)], {}),
    "BatchNormalization, columns": (
        "BatchNormalization",
        [ones(1, 300, 1), ones(300), ones(300), *[ones(300, 1)] * 2],
        {"training_mode": 1},
    ),
    "BatchNormalization, double": (
        "BatchNormalization",
        [ones(1, 9, 90, 90), ones(9), ones(9), *[ones(9, dtype=float)] * 2],
        {},
    ),
    "BatchNormalization, statistics": (
        "BatchNormalization",
        [ones(1, 90_000, 1), *[ones(1)] * 4],
        {"training_mode": 1},
    ),
    "QLinearMatMul, broadcast": (
        "QLinearMatMul",
        [BYTES[0, 0, :, :3], SCALE, ZERO, BYTES[0, 0, :3, :9], SCALE, ZERO, ones(99, 1, 1), ZERO],
        {},
    ),
    "QLinearConv, broadcast": (
        "QLinearConv",
        [BYTES[..., :9, :9], ones(99, 1, 1, 1), ZERO, BYTES[..., :3, :3], SCALE, ZERO, SCALE, ZERO],
        {},
    ),
    "Attention, causal": ("Attention", [ones(1, 1, 300, 8)] * 3, {"is_causal": 1}),
    "Attention, wide": ("Attention", [ones(1, 1, 600, 8), ones(1, 1, 1, 8), ones(1, 1, 1, 200)], {}),
    "Attention, mask": ("Attention", [*[ones(1, 1, 300, 8)] * 3, ones(300, 300)], {}),
    "Attention, bool mask": ("Attention", [*[ones(1, 1, 300, 8)] * 3, ones(300, 300, dtype=bool)], {}),
    "Attention, batches of V": ("Attention", [ones(1, 1, 300, 8), ones(1, 1, 9, 8), ones(60, 1, 9, 8)], {}),
    "Attention, heads of a mask": ("Attention", [*[ones(40, 1, 4, 8)] * 3, ones(1, 90, 4, 4)], {}),
    "Attention, heads of V": ("Attention", [ones(1, 1, 300, 8), ones(1, 1, 2, 8), ones(1, 90, 2, 8)], {}),
    "Attention, heads of K": ("Attention", [ones(1, 1, 60, 8), *[ones(1, 50, 60, 8)] * 2], {}),
    "Attention, rows of a mask": (
        "Attention",
        [ones(1, 1, 1, 8), ones(1, 1, 1, 8), ones(1, 1, 1, 200), ones(500, 1)],
        {},
    ),
    "Attention, heads": (
        "Attention",
        [ones(2, 100, 32), ones(2, 100, 8), ones(2, 100, 200)],
        {"q_num_heads": 4, "kv_num_heads": 1},
    ),
    "Attention, groups": ("Attention", [ones(1, 8, 4, 16), ones(1, 1, 900, 16), ones(1, 1, 900, 16)], {}),
    # pads, windows and columns
    "Conv, channels": ("Conv", [ones(1, 16, 30, 30), ones(16, 16, 3, 3)], {"pads": [1] * 4}),
    "Conv, groups": ("Conv", [ones(4, 16, 30, 30), ones(16, 1, 5, 5)], {"pads": [2] * 4, "group": 16}),
    "Conv, points": ("Conv", [ones(1, 16, 60, 60), ones(16, 16, 1, 1)], {}),
    "MaxPool, pads": ("MaxPool", [ones(1, 1, 4, 4)], {"kernel_shape": [4, 4], "pads": [200, 0, 200, 0]}),
    "MaxPool, ceil_mode": ("MaxPool", [ones(1, 1, 4, 4)], {"kernel_shape": [1, 1], "pads": [99] * 4, "ceil_mode": 1}),
    "AveragePool, window": ("AveragePool", [IMAGE], {"kernel_shape": [64, 64]}),
    "LpPool, window": ("LpPool", [IMAGE], {"kernel_shape": [64, 64]}),
    "MaxPool, window": ("MaxPool", [IMAGE], {"kernel_shape": [64, 64]}),
    "LpPool, double": ("LpPool", [ones(1, 1, 200, 200, dtype=float)], {"kernel_shape": [1, 1], "strides": [200, 200]}),
    "Conv": ("Conv", [IMAGE, ones(1, 1, 5, 5)], {}),
    "Conv, batch": ("Conv", [ones(4, 1, 64, 64), ones(8, 1, 3, 3)], {"auto_pad": "SAME_UPPER"}),
    "Conv, three axes": ("Conv", [ones(1, 2, 12, 12, 12), ones(1, 2, 3, 3, 3)], {}),
    "ConvInteger": ("ConvInteger", [BYTES, ones(1, 1, 5, 5, dtype=np.uint8)], {}),
    "QLinearConv": ("QLinearConv", [BYTES, SCALE, ZERO, BYTES[..., :3, :3], SCALE, ZERO, SCALE, ZERO], {}),
    "ConvTranspose": (
        "ConvTranspose",
        [ones(1, 1, 4, 4), ones(1, 1, 1, 1)],
        {"strides": [90, 90], "auto_pad": "SAME_LOWER"},
    ),
    "MaxUnpool": (
        "MaxUnpool",
        [ones(1, 1, 2, 2), ones(1, 1, 2, 2, dtype=int)],
        {"kernel_shape": [2, 2], "strides": [300, 300]},
    ),
    "Resize": ("Resize", [IMAGE[..., :32, :32], None, integers(1, 1, 2, 2).astype(np.float32)], {"mode": "cubic"}),
    "Resize, antialias": ("Resize", [IMAGE, None, None, integers(1, 1, 8, 64)], {"mode": "linear", "antialias": 1}),
    "GridSample": ("GridSample", [ones(1, 1, 4, 4), ones(1, 60, 5, 2)], {"mode": "nearest"}),
    "RoiAlign": ("RoiAlign", [IMAGE, ones(1, 4) * [[0, 0, 12, 12]], integers(0)], {}),
    "MaxPool, small": ("MaxPool", [ones(1, 1, 4, 4)], {"kernel_shape": [1, 1], "strides": [2**20, 2**20]}),
    "MaxPool, strides": ("MaxPool", [IMAGE], {"kernel_shape": [2, 2], "strides": [4, 4]}),
    "AveragePool, VALID": (
        "AveragePool",
        [IMAGE[..., :4, :4]],
        {"kernel_shape": [1, 1], "pads": [2**20] * 4, "auto_pad": "VALID"},
    ),
    "LpPool, SAME": (
        "LpPool",
        [IMAGE[..., :4, :4]],
        {"kernel_shape": [2, 2], "pads": [2**20] * 4, "auto_pad": "SAME_UPPER"},
    ),
    # temporary arrays
    "Sigmoid": ("Sigmoid", [ones(N)], {}),
    "Erf": ("Erf", [ones(N // 16)], {}),
    "Softmax": ("Softmax", [ones(4, N)], {}),
    "Where": ("Where", [ones(N, dtype=bool), ones(N), ones(1)], {}),
    "Div of integers": ("Div", [integers(*range(N)), integers(3)], {}),
    "Cast to float8": ("Cast", [ones(N)], {"to": onnx.TensorProto.FLOAT8E4M3FN}),
    "DequantizeLinear": ("DequantizeLinear", [ones(N, dtype=np.uint8), SCALE, ZERO], {}),
    "MatMulInteger": ("MatMulInteger", [ones(1, N, dtype=np.uint8), ones(N, 1, dtype=np.uint8)], {}),
    "TopK": ("TopK", [ones(4, 4, N // 16), integers(1)], {}),
    "GatherND": ("GatherND", [ones(2, 2), ones(2**9, 1, dtype=int)], {}),
    "NonZero": ("NonZero", [ones(16, 16, 64)], {}),
    "StringSplit": ("StringSplit", [np.array(["a b c"] * 1000, object)], {}),
    # no temporary arrays
    "ReduceSum": ("ReduceSum", [ones(2**10, 256), integers(0)], {}),
    "ArgMax": ("ArgMax", [ones(2**12, 64)], {"axis": 1}),
    "Equal": ("Equal", [ones(N, dtype=float), ones(N, dtype=float)], {}),
    "NegativeLogLikelihoodLoss": ("NegativeLogLikelihoodLoss", [ones(1, 1000, 16), ones(1, 16, dtype=int)], {}),
}


def peak(node: onnx.NodeProto, arrays: list[Any]) -> int:
    """Return the bytes that onnx's evaluator takes at the peak, even if it fails in the end."""
    from onnx.reference import ReferenceEvaluator

    from pyrnnx.frontends.onnx.runtime.operators import mended_ops

    opset = onnx.defs.onnx_opset_version()
    inputs = {name: array for name, array in zip(node.input, arrays, strict=True) if name}
    declared = [onnx.ValueInfoProto(name=name) for name in inputs]
    graph = helper.make_graph([node], "g", declared, [onnx.ValueInfoProto(name=name) for name in node.output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    evaluator = ReferenceEvaluator(model, new_ops=[*mended_ops(opset)])
    tracemalloc.start()
    with contextlib.suppress(Exception):
        evaluator.run(None, inputs)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.mark.filterwarnings("ignore")  # of what onnx computes of nothing
@each_row("name", PEAKS)
def test_bounds_are_near_the_peak(name: str) -> None:
    operator, arrays, attributes = PEAKS[name]
    names = [f"x{k}" if array is not None else "" for k, array in enumerate(arrays)]
    outputs = {"BatchNormalization": 3, "TopK": 2, "StringSplit": 2}.get(operator, 1)
    node = helper.make_node(operator, names, [f"y{k}" for k in range(outputs)], **attributes)
    expected, taken = expected_bytes(node, arrays), peak(node, arrays)
    assert expected is not None
    assert expected >= 0.9 * (taken - OVERHEAD), f"{expected} bytes; the evaluator takes {taken}"
    assert expected <= 5 * taken, f"{expected} bytes; the evaluator takes {taken}"


QUICK: dict[str, tuple[str, list[Any]]] = {
    "strings": ("Where", [np.ones(1000, bool), np.array(["a" * 300]), np.array(["b"])]),
    "an empty input": ("TensorScatter", [ones(1, 1, 40_000, 2), ones(1, 1, 0, 2)]),
}


@each_row("name", QUICK)
def test_what_is_beyond_the_limit_is_not_within_it_at_a_glance(name: str) -> None:
    operator, arrays = QUICK[name]
    node = helper.make_node(operator, [f"x{k}" for k in range(len(arrays))], ["y"])
    beyond = bytes_beyond(node)
    assert beyond is not None
    assert beyond(arrays, 2**17) == expected_bytes(node, arrays)
    assert (expected_bytes(node, arrays) or 0) > 2**17


def test_a_sequence_is_no_array() -> None:
    for operator in ("Add", "Identity"):
        beyond = bytes_beyond(helper.make_node(operator, ["x"], ["y"]))
        assert beyond is not None
        assert beyond([[FEW, FEW]], 1) == 0


def test_shapes_of_more_axes_than_there_are_are_not_measured() -> None:
    node = helper.make_node("Expand", ["x", "shape"], ["y"])
    assert expected_bytes(node, [FEW, np.ones(65, np.int64)]) is None
    assert expected_bytes(helper.make_node("Frob", ["x"], ["y"]), [FEW]) is None
