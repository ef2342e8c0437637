"""Variables of hand-written IRs: their declarations, and contradictions."""

from __future__ import annotations

import re

import numpy as np
import pytest
from openvino_nets import edges, layer, net, parameter, result
from rows import each_row

from pyrnnx import ArgumentError, PyrnnxError
from pyrnnx.frontends.openvino import read_model, to_onnx

ROW = ("FP32", (2,))
X = np.array([1, 2], np.float32)
READ = layer(1, "read", "ReadValue", {"variable_id": "sum"}, [ROW], [ROW], "opset3")
ASSIGN = layer(3, "assign", "Assign", {"variable_id": "sum"}, [ROW], [ROW], "opset3")
LAYERS = (
    parameter(0, "x", "2", (2,)),
    READ,
    layer(2, "add", "Add", None, [ROW] * 2, [ROW]),
    ASSIGN,
    result(4, "y", (2,)),
)
# The first versions of the operations: type and shape are those of the ports. The Result takes what Assign gives.
XML = net(LAYERS, edges("0.0 1.0", "0.0 2.0", "1.1 2.1", "2.2 3.0", "3.1 4.0"))


def y(model: object) -> list[float]:
    return next(iter(model(X).values())).tolist()  # type: ignore[operator, no-any-return]


def test_the_first_versions() -> None:
    model = read_model(XML, b"")
    (variable,) = model.variables
    assert (variable.name, variable.dtype, variable.shape) == ("sum", "float32", (2,))
    assert [y(model) for _ in range(3)] == [[2, 4], [3, 6], [4, 8]]
    assert [one.name for one in to_onnx(model).graph.input] == ["x", "sum"]


def test_names_that_others_have() -> None:
    """An id may be the name of an input."""
    model = read_model(XML.replace('"sum"', '"x"'), b"")
    assert [y(model), y(model)] == [[2, 4], [3, 6]]
    assert list(model.state) == ["x"]
    assert [one.name for one in to_onnx(model).graph.input] == ["x", "x_"]
    assert list(model.stream().state) == []


@pytest.mark.parametrize("shape", [None, "2000,2000,2000", "0,4611686018427387904,8"])
def test_a_variable_that_has_no_first_value(shape: str | None) -> None:
    """Neither ReadValue's input nor its shape tells one, or zeros of that shape would be too large."""
    dims = "" if shape is None else "".join(f"<dim>{one}</dim>" for one in shape.split(","))
    read = layer(1, "read", "ReadValue", {"variable_id": "sum"}, [], [ROW], "opset3").replace("<dim>2</dim>", dims)
    text = (
        XML.replace(READ, read)
        .replace(edges("0.0 1.0"), "")
        .replace('from-layer="1" from-port="1"', 'from-layer="1" from-port="0"')
    )
    model = read_model(text, b"")
    with pytest.raises(ArgumentError, match="variable 'sum' has no first value"):
        model(X)
    if shape is None:
        model.state = {"sum": X}
        assert y(model) == [2, 4]


def test_a_variable_of_any_rank() -> None:
    text = XML.replace(READ, READ.replace("<dim>2</dim>", ""))
    model = read_model(text, b"")
    assert [y(model), y(model)] == [[2, 4], [3, 6]]
    with pytest.raises(PyrnnxError, match=r"ReadValue 'read' \(id 1\): the rank of variable 'sum' is dynamic"):
        to_onnx(model)


@each_row(("taken", "given"), [("FP32", "FP32"), ("FP32", "dynamic"), ("dynamic", "dynamic")])
def test_a_variable_of_dynamic_type_has_that_of_what_it_reads(taken: str, given: str) -> None:
    data = {"variable_id": "sum", "variable_type": "dynamic", "variable_shape": "..."}
    read = layer(1, "read", "ReadValue", data, [(taken, (2,))], [(given, (2,))], "opset3")
    model = read_model(XML.replace(READ, read), b"")
    (variable,) = model.variables
    assert (variable.dtype, variable.shape) == ("float32", None)
    assert [y(model) for _ in range(3)] == [[2, 4], [3, 6], [4, 8]]


BROKEN = {
    "assigned twice": (XML.replace(ASSIGN, ASSIGN + ASSIGN.replace('id="3"', 'id="9"')).replace("</edges>",
        edges("2.2 9.0") + "</edges>"), "it is assigned in Assign 'assign' (id 3), too"),
    "read nowhere": (XML.replace('variable_id="sum"', 'variable_id="other"', 1), "nothing reads it"),
    "of an unknown type": (XML.replace('variable_id="sum"', 'variable_id="sum" variable_type="f99"', 1), "'f99'"),
    "of no shape": (XML.replace('variable_id="sum"', 'variable_id="sum" variable_shape="a"', 1), "shape is 'a'"),
    "without an id": (XML.replace('variable_id="sum"', "", 1), "nothing reads it"),
    "with another attribute": (XML.replace('variable_id="sum"', 'variable_id="sum" speed="2"', 1), "'speed'"),
}  # fmt: skip


@each_row(("text", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_variables(text: str, words: str) -> None:
    with pytest.raises(PyrnnxError, match=re.escape(words)):
        read_model(text, b"")(X)
