"""Cases run by each way to call an operator other than its function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from kinds import kinds
from onnx.reference import ReferenceEvaluator
from onnx_models import case_model
from rows import each_row
from sessions import session

import pyrnnx.frontends.onnx as frontend
from pyrnnx.onnxruntime import InferenceSession, rewrite
from pyrnnx.testing.cases import CASES, OUTPUTS, RUNTIME_INPUTS, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import Array, assert_close, numpy_dtype, tolerance_of
from pyrnnx.testing.onnx_models import make_node

KINDS = kinds(CASES)
Outputs = tuple[Array, ...]


def by_node(case: Case) -> Outputs:
    arrays = make_arrays(case)
    inputs = {name: arrays.pop(name) for name in RUNTIME_INPUTS if name in arrays}
    layer = frontend.from_node(make_node(case, [*inputs, *arrays]), dict(arrays), opset=case.opset)
    first: Outputs = layer(**inputs)
    layer(**inputs | {"X": -inputs["X"]})  # a layer remembers nothing
    return first


def by_evaluator(case: Case) -> Outputs:
    if 0 in (case.T, case.N, case.I):
        pytest.skip("onnx's evaluator infers the shapes of empty arrays otherwise")
    model, inputs = case_model(case, ("W", "R") if len(case.name) % 2 else ())
    return tuple(ReferenceEvaluator(model, new_ops=frontend.reference_ops()).run(None, inputs))


def by_model(case: Case) -> Outputs:
    model, given = case_model(case)
    results = frontend.read_model(model)(given)
    assert tuple(results) == OUTPUTS[case.operator]
    return tuple(results.values())


def by_drop_in(case: Case) -> Outputs:
    if case.dtype == "bfloat16":
        pytest.skip("a session of ONNX Runtime takes no arrays of bfloat16")
    model, inputs = case_model(case)
    own = InferenceSession(model.SerializeToString())
    assert len(own.layers) == 1
    return tuple(own.run(None, inputs))


def by_rewritten(case: Case) -> Outputs:
    """The same bits as the drop-in."""
    expected, (model, inputs) = by_drop_in(case), case_model(case)
    portable = rewrite(model)
    assert [(node.domain, node.op_type) for node in portable.graph.node] == [("pyrnnx", "Recurrent")]
    outputs = tuple(session(portable).run(None, inputs))
    for output, other in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(output, other)
    return outputs


DOORS = (by_node, by_evaluator, by_model, by_drop_in, by_rewritten)


@pytest.fixture(params=DOORS, ids=lambda door: door.__name__)
def door(request: pytest.FixtureRequest) -> Any:
    return request.param


@each_row("case", KINDS)
def test_case_agrees_with_the_oracle(door: Callable[[Case], Outputs], case: Case) -> None:
    outputs, expected = door(case), expected_outputs(case, make_arrays(case))
    assert [y.shape for y in outputs] == [y.shape for y in expected]
    assert {y.dtype for y in outputs} == {numpy_dtype(case.dtype)}
    assert_close(outputs, expected, tolerance_of(case.dtype), case.name)
