"""The tables of opsets against onnx.defs: attributes, inputs, outputs and types of every version."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import onnx
import pytest

from pyrnnx.frontends.onnx import SCHEMAS, schema
from pyrnnx.frontends.onnx.graph.sizes.call import element_bytes
from pyrnnx.frontends.onnx.onnx_package import import_onnx
from pyrnnx.frontends.onnx.runtime.operators import _OLDER, mended_ops
from pyrnnx.frontends.onnx.schemas import NEWEST_OPSET, QUANTIZED_LSTM
from pyrnnx.frontends.onnx.schemas import OPERATORS as ROWS
from pyrnnx.testing.cases import OPERATORS

DTYPES = {
    "tensor(float)": "float32",
    "tensor(double)": "float64",
    "tensor(float16)": "float16",
    "tensor(bfloat16)": "bfloat16",
}
VERSIONS = [(operator, version) for operator in SCHEMAS for version in SCHEMAS[operator]]
each_version = pytest.mark.parametrize(("operator", "version"), VERSIONS)


def defined(operator: str, version: int) -> Any:
    return onnx.defs.get_schema(operator, version, "")


@pytest.mark.parametrize("operator", OPERATORS)
def test_versions(operator: str) -> None:
    found = {one.since_version for one in onnx.defs.get_all_schemas_with_history() if one.name == operator}
    assert set(SCHEMAS[operator]) == found


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_opset_has_the_definition_that_onnx_gives_it(operator: str) -> None:
    for opset in range(1, max(NEWEST_OPSET, onnx.defs.onnx_opset_version()) + 1):
        assert schema(operator, opset).since_version == defined(operator, opset).since_version


@each_version
def test_attributes(operator: str, version: int) -> None:
    theirs, ours = defined(operator, version).attributes, SCHEMAS[operator][version]
    assert sorted(ours.attributes) == sorted(theirs)
    for name, attribute in theirs.items():
        row = ours.attribute(name)
        assert row is not None, name
        assert row.type.name == attribute.type.name, name
        assert not attribute.required, name
        default = onnx.helper.get_attribute_value(attribute.default_value) if attribute.default_value.name else None
        assert (None if default is None else row.type.read(default)) == listed(row.default), name
        assert ours.defaults[name] == row.default, name


def listed(default: Any) -> Any:
    return list(default) if isinstance(default, tuple) else default


@each_version
def test_inputs_and_outputs(operator: str, version: int) -> None:
    theirs, ours = defined(operator, version), SCHEMAS[operator][version]
    assert list(ours.inputs) == [one.name for one in theirs.inputs]
    assert list(ours.outputs) == [one.name for one in theirs.outputs]
    assert (theirs.min_input, theirs.max_input) == (3, len(ours.inputs))
    assert theirs.max_output == len(ours.outputs)
    for one in theirs.inputs:
        assert one.type_str == ("T1" if one.name == "sequence_lens" else "T")


@each_version
def test_types(operator: str, version: int) -> None:
    constraints = {one.type_param_str: one.allowed_type_strs for one in defined(operator, version).type_constraints}
    assert sorted(SCHEMAS[operator][version].dtypes) == sorted(DTYPES[one] for one in constraints["T"])
    assert list(constraints["T1"]) == ["tensor(int32)"]


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


@pytest.mark.parametrize("operator", _OLDER)
def test_older_operators(operator: str) -> None:
    """What stands for them exists at the version named, and they exist from the first one on."""
    from onnx.reference.ops import load_op

    first, equal, version = _OLDER[operator]
    assert min(one.since_version for one in onnx.defs.get_all_schemas_with_history() if one.name == operator) == first
    assert defined(equal, version).since_version == version
    names = {one.__name__ for opset in (first, version - 1) for one in mended_ops(opset)}
    assert operator in names
    assert operator not in {one.__name__ for opset in (first - 1, version) for one in mended_ops(opset)}
    with pytest.raises(Exception, match=operator):  # onnx itself has none there; else the row is not needed
        load_op("", operator, first)


def test_sizes_of_elements() -> None:
    for name, number in onnx.TensorProto.DataType.items():
        if name != "UNDEFINED":
            expected = onnx.helper.tensor_dtype_to_np_dtype(number).itemsize
            assert element_bytes(number) == expected


def test_onnx_is_imported_only_for_models() -> None:
    """Neither by importing the front-end nor by calling an operator."""
    program = """
import sys
import numpy as np
import pyrnnx.frontends.onnx as frontend
one = np.ones((1, 1, 1), np.float32)
frontend.rnn(one, one, one, opset=14)
found = {name.partition(".")[0] for name in sys.modules} & {"onnx", "google", "onnxruntime", "lxml", "openvino"}
assert not found, found
assert "pyrnnx.frontends.openvino" not in sys.modules
assert "pyrnnx.frontends.onnx.backend" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
    assert import_onnx() is onnx
