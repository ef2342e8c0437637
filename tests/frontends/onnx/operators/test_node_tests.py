"""The official node tests of the ONNX project for RNN, GRU and LSTM: the oracle and the functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx_node_tests import RECURRENT, only

import pyrnnx.frontends.onnx as frontend
from pyrnnx import reference
from pyrnnx.testing.cases import INPUTS, OPERATORS

# The expected values were computed in float32 or float64 by another order of sums; inputs go up to 18.
RTOL, ATOL = 1e-5, 1e-6


def attribute(value: onnx.AttributeProto) -> Any:
    plain = onnx.helper.get_attribute_value(value)
    return plain.decode() if isinstance(plain, bytes) else plain


def test_node_tests() -> None:
    from onnx.backend.test.case.node import collect_testcases

    with only(RECURRENT):
        tests: list[Any] = [test for test in collect_testcases(None) if test.model is not None]
    tests = [test for test in tests if test.model.graph.node[0].op_type in OPERATORS]
    assert len({test.name for test in tests}) == 18  # of onnx 1.23
    for test in tests:
        (node,), opset = test.model.graph.node, test.model.opset_import[0].version
        attributes = {row.name: attribute(row) for row in node.attribute}
        for inputs, expected in test.data_sets:
            values = dict(zip((info.name for info in test.model.graph.input), inputs, strict=True))
            arrays = {name: values[own] for name, own in zip(INPUTS[node.op_type], node.input, strict=False) if own}
            oracle = reference.run(node.op_type, **arrays, **attributes)
            function = getattr(frontend, node.op_type.lower())(**arrays, **attributes, opset=opset)
            for label, outputs in (("oracle", oracle), ("function", function)):
                chosen = [y for y, name in zip(outputs, node.output, strict=False) if name]
                for y, wanted in zip(chosen, expected, strict=True):
                    assert y.dtype == (np.float64 if label == "oracle" else wanted.dtype), (test.name, label)
                    assert y.shape == wanted.shape, (test.name, label)
                    np.testing.assert_allclose(y, wanted, RTOL, ATOL, err_msg=f"{test.name} {label}")
