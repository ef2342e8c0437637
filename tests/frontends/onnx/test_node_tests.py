"""The official node tests of the ONNX project for RNN, GRU and LSTM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from onnx_node_tests import RECURRENT, only

import pyrnnx.frontends.onnx as frontend
from pyrnnx.testing import reference
from pyrnnx.testing.cases import INPUTS, OPERATORS, RUNTIME_INPUTS
from pyrnnx.testing.numbers import Array

# onnx 1.23 has exactly these; their names do not tell RNN's apart in one pattern.
NAMES = [
    *(f"test_gru_{what}" for what in ("defaults", "with_initial_bias", "seq_length", "batchwise")),
    *(f"test_lstm_{what}" for what in ("defaults", "with_initial_bias", "with_peepholes", "batchwise")),
    *(f"test_simple_rnn_{what}" for what in ("defaults", "with_initial_bias", "batchwise")),
    "test_rnn_seq_length",
    *(f"test_{op}_{what}" for op in ("gru", "lstm", "simple_rnn") for what in ("reverse", "bidirectional")),
]
each_test = pytest.mark.parametrize("name", NAMES)

# The expected values were computed in float32 or float64 by another order of sums; inputs go up to 18.
RTOL, ATOL = 1e-5, 1e-6


@pytest.fixture(scope="session")
def node_tests() -> dict[str, Any]:
    from onnx.backend.test.case.node import collect_testcases

    with only(RECURRENT):
        found = collect_testcases(None)
    nodes = ((test, test.model.graph.node) for test in found if test.model is not None)
    return {test.name: test for test, node in nodes if len(node) == 1 and node[0].op_type in OPERATORS}


def split(test: Any, inputs: list[Array]) -> tuple[onnx.NodeProto, dict[str, Array]]:
    """The node, and its inputs by the names in the operator text."""
    (node,) = test.model.graph.node
    given = dict(zip((value.name for value in test.model.graph.input), inputs, strict=True))
    names = zip(INPUTS[node.op_type], node.input, strict=False)
    return node, {formal: given[actual] for formal, actual in names if actual}


def assert_outputs(node: onnx.NodeProto, outputs: tuple[Array, ...], expected: list[Array]) -> None:
    chosen = [y for y, name in zip(outputs, node.output, strict=False) if name]
    assert len(chosen) == len(expected)
    for y, e in zip(chosen, expected, strict=True):
        assert (y.shape, y.dtype) == (e.shape, e.dtype)
        np.testing.assert_allclose(y, e, rtol=RTOL, atol=ATOL)


def attributes_of(node: onnx.NodeProto) -> Mapping[str, Any]:
    values = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    return {name: value.decode() if isinstance(value, bytes) else value for name, value in values.items()}


def test_there_are_18(node_tests: dict[str, Any]) -> None:
    assert sorted(node_tests) == sorted(NAMES)
    assert len(NAMES) == 18


@each_test
def test_by_the_oracle(node_tests: dict[str, Any], name: str) -> None:
    test = node_tests[name]
    for inputs, expected in test.data_sets:
        node, arrays = split(test, inputs)
        outputs = reference.run(node.op_type, **arrays, **attributes_of(node))
        # the results' dtype is that of the expected values, to which float64 is rounded once
        assert_outputs(node, tuple(y.astype(expected[0].dtype) for y in outputs), expected)


@each_test
def test_by_node(node_tests: dict[str, Any], name: str) -> None:
    test = node_tests[name]
    opset = test.model.opset_import[0].version
    for inputs, expected in test.data_sets:
        node, arrays = split(test, inputs)
        actual = dict(zip(INPUTS[node.op_type], node.input, strict=False))
        weights = {actual[formal]: array for formal, array in arrays.items() if formal not in RUNTIME_INPUTS}
        layer = frontend.from_node(node, weights, opset=opset)
        at_run_time = {formal: array for formal, array in arrays.items() if formal in RUNTIME_INPUTS}
        assert_outputs(node, layer(**at_run_time), expected)


@each_test
def test_by_function(node_tests: dict[str, Any], name: str) -> None:
    test = node_tests[name]
    opset = test.model.opset_import[0].version
    for inputs, expected in test.data_sets:
        node, arrays = split(test, inputs)
        function = getattr(frontend, node.op_type.lower())
        assert_outputs(node, function(**arrays, **attributes_of(node), opset=opset), expected)
