"""The signatures of `rnn`, `gru` and `lstm`: every input and attribute of every opset, as help() shows it."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from rows import each_row

import pyrnnx.frontends.onnx as frontend
from pyrnnx import UnsupportedError
from pyrnnx.testing.cases import OPERATORS


@each_row("operator", OPERATORS)
def test_signatures(operator: str) -> None:
    function = getattr(frontend, operator.lower())
    parameters = inspect.signature(function).parameters
    inputs = {name: row.default for name, row in parameters.items() if row.kind is row.POSITIONAL_OR_KEYWORD}
    attributes = {name: row.default for name, row in parameters.items() if row.kind is row.KEYWORD_ONLY}
    assert tuple(inputs) == frontend.schema(operator, 22).inputs
    assert list(inputs.values()) == [inspect.Parameter.empty] * 3 + [None] * (len(inputs) - 3)
    assert attributes.pop("opset") == 22
    assert attributes == dict.fromkeys(name for row in frontend.SCHEMAS[operator].values() for name in row.attributes)
    assert len(parameters) == len(inputs) + len(attributes) + 1  # no *args or **kwargs
    assert pickle.loads(pickle.dumps(function)) is function

    text = inspect.getdoc(function) or ""
    assert text.startswith(f"Run ONNX {operator}")
    listed = text.partition("Parameters\n---")[2].partition("Returns\n---")[0]
    lines = [line.partition(" : ")[0] for line in listed.splitlines() if " : " in line and not line.startswith(" ")]
    assert {name for line in lines for name in line.split(", ")} == set(parameters)
    assert "`pyrnnx.Layer` prepares them once" in text

    ones = np.ones((1, 1, 1), np.float32)
    with pytest.raises(UnsupportedError, match=rf"^{operator}: argument 'hiden_size' is unknown; .* hidden_size,"):
        function(ones, ones, ones, hiden_size=1)
    arrays = [np.ones((1, units, 1), np.float32) for units in (1, *[{"RNN": 1, "GRU": 3, "LSTM": 4}[operator]] * 2)]
    for opset in (1, 7):  # None is as not given, even for attributes that the opset does not have
        np.testing.assert_array_equal(function(*arrays, opset=opset, **attributes)[0], function(*arrays)[0])
