"""The operators in onnx's ReferenceEvaluator."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx_models import simple_model

from pyrnnx.frontends.onnx import from_node, reference_ops
from pyrnnx.testing.cases import OUTPUTS, RUNTIME_INPUTS, Case, expected_outputs, make_arrays
from pyrnnx.testing.numbers import Array, assert_close, tolerance_of
from pyrnnx.testing.onnx_models import make_node

LSTM = Case("lstm of an evaluator", "LSTM", {}, ("B", "P", "initial_h", "initial_c"), (4, 1, 3), I=3, H=5)
GRU = Case("gru of an evaluator", "GRU", {"direction": "reverse", "clip": 0.5}, ("B",), (4, 1, 3), I=3, H=5)
LINKED = Case("linked", "GRU", {}, (), I=3, H=5)
module: Any = importlib.import_module("pyrnnx.frontends.onnx.operators.reference_ops")  # a function has its name
TOLERANCE = tolerance_of(LSTM.dtype)


def evaluator(case: Case, constant: bool = True, outputs: tuple[str, ...] = ()) -> ReferenceEvaluator:
    arrays = make_arrays(case)
    constants = {n: a for n, a in arrays.items() if constant and n not in RUNTIME_INPUTS}
    given = {n: a for n, a in arrays.items() if n not in constants}
    node = make_node(case, arrays)
    if outputs:
        del node.output[:]
        node.output.extend(outputs)
    names = [name for name in outputs or OUTPUTS[case.operator] if name]
    model = simple_model([node], given, names, constants, case.opset)
    return ReferenceEvaluator(model, new_ops=reference_ops())


def run(session: ReferenceEvaluator, arrays: dict[str, Array]) -> list[Array]:
    return list(session.run(None, {name: arrays[name] for name in session.input_names}))


@pytest.mark.parametrize("outputs", [("Y",), ("Y", "Y_h"), ("", "Y_h"), ("", "", "Y_c")])
def test_as_many_outputs_as_are_named(outputs: tuple[str, ...]) -> None:
    arrays = make_arrays(LSTM)
    expected = dict(zip(OUTPUTS["LSTM"], expected_outputs(LSTM, arrays), strict=True))
    results = run(evaluator(LSTM, outputs=outputs), arrays)
    assert_close(results, [expected[name] for name in outputs if name], TOLERANCE)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of operators, one for each time that weights are prepared."""
    calls: list[str] = []

    def counted(node: onnx.NodeProto, *arguments: Any) -> Any:
        calls.append(node.op_type)
        return from_node(node, *arguments)

    monkeypatch.setattr(module, "from_node", counted)
    return calls


def test_weights_are_prepared_once_if_they_are_constants(prepared: list[str]) -> None:
    """Others may change in place, even if the array is a view that cannot be written."""
    session, arrays = evaluator(LSTM), make_arrays(LSTM)
    for _ in range(3):
        assert_close(run(session, arrays), expected_outputs(LSTM, arrays), TOLERANCE)
    assert prepared == ["LSTM"]
    session, owners = evaluator(LSTM, constant=False), dict(arrays)
    arrays["R"] = owners["R"].view()
    arrays["R"].flags.writeable = False
    for factor in (1, 0.5, 3):
        for name in "WR":
            owners[name] *= np.float32(factor)
        assert_close(run(session, arrays), expected_outputs(LSTM, arrays), TOLERANCE)
    assert prepared == ["LSTM"] * 4
    for seed in (1, 1, 2):  # arrays that nobody can write
        arrays = {
            n: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape) for n, a in make_arrays(LSTM, seed=seed).items()
        }
        for _ in range(2):
            assert_close(run(session, arrays), expected_outputs(LSTM, arrays), TOLERANCE)
    assert prepared == ["LSTM"] * 7


def test_linked_attributes() -> None:
    """An evaluator of a function sets attributes at each call."""
    node = helper.make_node("GRU", ["X", "W", "R"], ["Y"], hidden_size=GRU.H)
    kinds = {"direction": onnx.AttributeProto.STRING, "clip": onnx.AttributeProto.FLOAT}
    kinds |= {"activations": onnx.AttributeProto.STRINGS}
    for name, kind in kinds.items():
        node.attribute.append(onnx.AttributeProto(name=name, ref_attr_name=f"outer_{name}", type=kind))
    (cls,) = (cls for cls in reference_ops() if cls.__name__ == "GRU")
    parameters = {"log": lambda *_: None, "opsets": {"": 17}, "verbose": 0, "new_ops": None}
    operator = cls(node, parameters)
    arrays = make_arrays(LINKED)
    frozen = {n: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape) for n, a in arrays.items()}
    values: list[dict[str, Any]] = [
        {"direction": "forward", "clip": np.float32(0.5), "activations": ["Sigmoid", "Tanh"]},
        {"direction": "reverse", "clip": np.float32(0.25), "activations": ["HardSigmoid", "Relu"]},
    ]
    for attributes in (*values, values[1]):
        linked = {f"outer_{name}": value for name, value in attributes.items()}
        results = operator.run(*frozen.values(), linked_attributes=linked)
        assert_close(results, expected_outputs(LINKED, arrays, **attributes)[:1], TOLERANCE)
