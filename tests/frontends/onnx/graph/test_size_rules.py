"""Size rules compared with results of onnx's node tests, and with values computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_node_tests import SLOW, only, quick
from rows import each_row

from pyrnnx.frontends.onnx.graph.sizes import rules
from pyrnnx.frontends.onnx.graph.sizes.table import RULES, expected_bytes


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


@pytest.mark.filterwarnings("ignore")  # of what onnx computes for its tests
def test_results_of_node_tests_take_no_more() -> None:
    seen, wrong = too_small(quick())
    assert wrong == {}
    assert {"Attention", "Col2Im", "DeformConv", "LinearAttention", "QLinearConv", "Resize", "STFT", "Tile"} <= seen
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
    "Upsample-1": ("Upsample", [X], {"height_scale": 2.0, "width_scale": 3.0}, 6 * X.nbytes),
    "MaxRoiPool": ("MaxRoiPool", [X, np.ones((9, 5), np.float32)], {"pooled_shape": [6, 7]}, 9 * 3 * 6 * 7 * 4),
    "Multinomial": ("Multinomial", [FEW], {"sample_size": 11}, 2 * 11 * 8),
    "RandomNormalLike": ("RandomNormalLike", [FEW], {}, 2 * 7 * 8),
    "a negative number": ("Multinomial", [FEW], {"sample_size": -1}, 0),
    "a sequence": ("ConcatFromSequence", [[X, X]], {"axis": 0}, 2 * X.nbytes),
}


@each_row("name", BY_HAND)
def test_by_hand(name: str) -> None:
    operator, arrays, attributes, expected = BY_HAND[name]
    node = helper.make_node(operator, [f"x{k}" for k in range(len(arrays))], ["y"], **attributes)
    assert expected_bytes(node, arrays) == expected


def test_shapes_of_more_axes_than_there_are_are_not_measured() -> None:
    node = helper.make_node("Expand", ["x", "shape"], ["y"])
    assert expected_bytes(node, [FEW, np.ones(65, np.int64)]) is None
    assert expected_bytes(helper.make_node("Frob", ["x"], ["y"]), [FEW]) is None
