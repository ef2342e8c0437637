"""The tables of opsets against onnx.defs, and the signatures of functions, as help() shows them."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import onnx
import pytest
from rows import each_row

import pyrnnx.frontends.onnx as frontend
from pyrnnx import UnsupportedError
from pyrnnx.frontends.onnx import SCHEMAS, schema
from pyrnnx.frontends.onnx.operators.schemas import NEWEST_OPSET, QUANTIZED_LSTM
from pyrnnx.frontends.onnx.operators.schemas import OPERATORS as ROWS
from pyrnnx.testing.cases import OPERATORS

DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bfloat16)": "bfloat16",
}
VERSIONS = [(operator, version) for operator in SCHEMAS for version in SCHEMAS[operator]]


def defined(operator: str, version: int) -> Any:
    return onnx.defs.get_schema(operator, version, "")


@each_row("operator", OPERATORS)
def test_versions(operator: str) -> None:
    schemas = onnx.defs.get_all_schemas_with_history()
    assert set(SCHEMAS[operator]) == {row.since_version for row in schemas if row.name == operator}
    for opset in range(1, max(NEWEST_OPSET, onnx.defs.onnx_opset_version()) + 1):
        assert schema(operator, opset).since_version == defined(operator, opset).since_version


@each_row(("operator", "version"), VERSIONS)
def test_definitions(operator: str, version: int) -> None:
    theirs, ours = defined(operator, version), SCHEMAS[operator][version]
    assert sorted(ours.attributes) == sorted(theirs.attributes)
    for name, attribute in theirs.attributes.items():
        row = ours.attribute(name)
        assert row is not None, name
        assert row.type.name == attribute.type.name, name
        assert not attribute.required, name
        default = onnx.helper.get_attribute_value(attribute.default_value) if attribute.default_value.name else None
        expected = list(row.default) if isinstance(row.default, tuple) else row.default
        assert (None if default is None else row.type.read(default)) == expected, name
        assert ours.defaults[name] == row.default, name
    assert list(ours.inputs) == [info.name for info in theirs.inputs]
    assert list(ours.outputs) == [info.name for info in theirs.outputs]
    assert (theirs.min_input, theirs.max_input, theirs.max_output) == (3, len(ours.inputs), len(ours.outputs))
    for info in theirs.inputs:
        assert info.type_str == ("T1" if info.name == "sequence_lens" else "T")
    allowed = {row.type_param_str: row.allowed_type_strs for row in theirs.type_constraints}
    assert sorted(ours.dtypes) == sorted(DTYPES[name] for name in allowed["T"])
    assert list(allowed["T1"]) == ["tensor(int32)"]


def test_quantized_lstm() -> None:
    """Against ONNX Runtime, whose own operator it is."""
    state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")
    (theirs,) = (one for one in state.get_all_operator_schema() if one.name == QUANTIZED_LSTM.operator)
    row = ROWS[QUANTIZED_LSTM.operator]
    assert (theirs.domain, theirs.since_version) == (row.domain, QUANTIZED_LSTM.since_version)
    assert [one.name for one in theirs.inputs] == list(row.inputs)
    assert [one.name for one in theirs.outputs] == list(row.outputs)
    required = [one.name for one in theirs.inputs if one.option.name == "Single"]
    assert required == ["X", "W", "R", *row.scales]
    assert sorted(theirs.attributes) == sorted(QUANTIZED_LSTM.attributes)
    for one in QUANTIZED_LSTM.declared:
        assert theirs.attributes[one.name].type.name == one.type.name, one.name


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
