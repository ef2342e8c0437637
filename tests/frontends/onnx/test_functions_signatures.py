"""The signatures of `rnn`, `gru` and `lstm`: every input and attribute of every opset, as help() shows it."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import pyrnnx.frontends.onnx as frontend
from pyrnnx import UnsupportedError
from pyrnnx.testing.cases import OPERATORS

each_operator = pytest.mark.parametrize("operator", OPERATORS)


def parameters(operator: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(getattr(frontend, operator.lower())).parameters)


@each_operator
def test_inputs_stand_in_the_order_of_the_operator(operator: str) -> None:
    found = parameters(operator)
    inputs = [name for name, one in found.items() if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert tuple(inputs) == frontend.schema(operator, 22).inputs
    required = [name for name in inputs if found[name].default is inspect.Parameter.empty]
    assert required == ["X", "W", "R"]
    assert all(found[name].default is None for name in inputs[3:])


@each_operator
def test_attributes_of_all_opsets_are_spelt_out(operator: str) -> None:
    found = parameters(operator)
    named = {name: one.default for name, one in found.items() if one.kind is inspect.Parameter.KEYWORD_ONLY}
    assert named.pop("opset") == 22
    expected = {name for one in frontend.SCHEMAS[operator].values() for name in one.attributes}
    assert named == dict.fromkeys(expected)  # None: not given
    assert len(found) == len(named) + 1 + len(frontend.schema(operator, 22).inputs)  # and no *args or **kwargs


@each_operator
def test_help_tells_every_argument_itself(operator: str) -> None:
    text = inspect.getdoc(getattr(frontend, operator.lower())) or ""
    _, _, rest = text.partition("Parameters\n---")
    listed, _, _ = rest.partition("Returns\n---")
    lines = [line.partition(" : ")[0] for line in listed.splitlines() if " : " in line and not line.startswith(" ")]
    assert {name for line in lines for name in line.split(", ")} == set(parameters(operator))
    assert "As of" not in text
    assert "`pyrnnx.Layer` prepares them once" in text


@each_operator
def test_attributes_that_are_none_are_not_given(operator: str) -> None:
    """Even those that the opset does not have."""
    units = {"RNN": 2, "GRU": 6, "LSTM": 8}[operator]
    arrays = [np.full(shape, 0.5, np.float32) for shape in ((3, 1, 2), (1, units, 2), (1, units, 2))]
    function = getattr(frontend, operator.lower())
    nothing: dict[str, Any] = {name: None for name, one in parameters(operator).items() if one.kind is one.KEYWORD_ONLY}
    del nothing["opset"]
    for opset in (1, 7, 22):
        for one, other in zip(function(*arrays, opset=opset, **nothing), function(*arrays), strict=True):
            np.testing.assert_array_equal(one, other)


@each_operator
def test_unknown_arguments_are_errors_of_this_package(operator: str) -> None:
    function = getattr(frontend, operator.lower())
    one = np.ones((1, 1, 1), np.float32)
    with pytest.raises(UnsupportedError, match=rf"^{operator}: argument 'hiden_size' is unknown; .* hidden_size,"):
        function(one, one, one, hiden_size=1)
    assert pickle.loads(pickle.dumps(function)) is function
    assert function.__doc__.startswith(f"ONNX {operator}")
