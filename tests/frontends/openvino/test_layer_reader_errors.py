"""Every bad XML, attribute and port of a layer is a PyrnnxError that names the layer and the mistake."""

from __future__ import annotations

import re
from typing import Any

import pytest
from lxml import etree
from openvino_layers import GOOD, LABEL, rejected, write
from rows import each_row

from pyrnnx import PyrnnxWarning
from pyrnnx.frontends.openvino import OPERATIONS, read_layer
from pyrnnx.frontends.openvino.schemas import TYPES

BROKEN: dict[str, tuple[Any, str]] = {
    "empty": ("", "empty"),
    "bytes that are not UTF-8": (GOOD.replace("decoder", "d\xe4coder").encode("latin-1"), "not well-formed"),
    "undeclared entity": (GOOD.replace("decoder", "&decoder;"), "not well-formed"),
    "surrogates": (GOOD.replace("decoder", "\ud800"), ""),
    "too deep": ("<layer>" + "<a>" * 100_000, "not well-formed"),
    "a whole net": (f"<net><layers>{GOOD}</layers></net>", "the root element is <net>; expected <layer>"),
    "root in a namespace": (GOOD.replace("<layer ", '<layer xmlns="urn:a" '), "the root element is <{urn:a}layer>"),
}
DTD = '<!DOCTYPE layer [<!ENTITY a "decoder"><!ENTITY ext SYSTEM "file:///etc/passwd">]>'
LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
DOCTYPES = {
    "empty document type": "<!DOCTYPE layer>" + GOOD,
    "external document type": '<!DOCTYPE layer SYSTEM "http://localhost:1/layer.dtd">' + GOOD,
    "external entity in a dimension": DTD + GOOD.replace("<dim>5</dim>", "<dim>&ext;</dim>"),
    "parameter entity": '<!DOCTYPE layer [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>' + GOOD,
    "billion laughs in a dimension": f'<!DOCTYPE layer [<!ENTITY l0 "1">{LAUGHS}]>' + GOOD.replace(">5<", ">&l9;<"),
    "default attributes": '<!DOCTYPE layer [<!ATTLIST data hidden_size CDATA "6">]>'
    + GOOD.replace(' hidden_size="6"', ""),
}


@each_row(("xml", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_xml(xml: Any, words: str) -> None:
    rejected(lambda: read_layer(xml), "read_layer", words)


@each_row("as_bytes", [False, True], ids=["text", "bytes"])
@each_row("xml", DOCTYPES.values(), ids=DOCTYPES)
def test_document_types_are_refused(xml: str, as_bytes: bool) -> None:
    message = rejected(lambda: read_layer(xml.encode() if as_bytes else xml), "read_layer")
    assert "DTD" in message or "not well-formed" in message
    assert "root:" not in message  # of /etc/passwd


def test_document_type_of_an_element_that_was_parsed_elsewhere() -> None:
    """Whoever parsed it has expanded it or not; what is not expanded is not taken for text."""
    element = etree.fromstring((DTD + GOOD.replace(">5<", ">&ext;<")).encode(), etree.XMLParser(resolve_entities=False))
    rejected(lambda: read_layer(element), "17")


@each_row("xml", [None, 3, 3.5, [], {}, object(), ["<layer/>"]], ids=lambda xml: type(xml).__name__)
def test_what_is_no_xml_at_all(xml: Any) -> None:
    rejected(lambda: read_layer(xml), "read_layer", type(xml).__name__, "expected XML text")


Change = tuple[str, str]  # this text of GOOD, by that
ELEMENT: dict[str, tuple[Change, tuple[str, ...]]] = {
    "no type": ((' type="LSTMSequence"', ""), ("'decoder/lstm' (id 17)", "type", "LSTMSequence")),
    "TensorIterator": (("LSTMSequence", "TensorIterator"),
        ("'decoder/lstm' (id 17)", "a loop", "read_model")),
    "ONNX's name": (("LSTMSequence", "LSTM"), ("LSTM 'decoder/lstm' (id 17)", "LSTMSequence")),
    "huge version": (("opset5", f"opset{'9' * 400}"), (LABEL, "version")),
    "version of another kind": (("opset5", "extension"), (LABEL, "'extension'")),
    "no hidden_size": ((' hidden_size="6"', ""), (LABEL, "hidden_size", "missing")),
}  # fmt: skip
VALUES = (  # attribute, words, values
    ("hidden_size", "hidden_size", ("", "0", "-6", "6.5", "six", "0x6", "6,6", "nan", "9" * 400,
        "9223372036854775808")),
    ("hidden_size", "hidden_size=7", ("7",)),
    ("direction", "direction", ("forwards", "1", "forward,reverse", "")),
    ("direction", "num_directions=2", ("bidirectional",)),
    ("activations", "expected 3", ("sigmoid,tanh", "sigmoid,tanh,tanh,tanh", "sigmoid;tanh;tanh")),
    ("activations", "unknown", ("sigmoid,,tanh", "sigmoid,tanh,swish")),
    ("activations", "ScaledTanh", ("sigmoid,tanh,scaledtanh",)),
    ("activations_alpha", "activations_alpha has 4", ("1,2,3,4",)),
    ("activations_alpha", "numbers", ("one", "1,,2", "1;2")),
    ("activations_beta", "numbers", ("0.5 0.5",)),
    ("clip", "clip", ("-0.5", "-inf", "nan", "", "none", "0,5")),
)  # fmt: skip


@each_row(("change", "words"), ELEMENT.values(), ids=ELEMENT)
def test_bad_elements(change: Change, words: tuple[str, ...]) -> None:
    assert change[0] in GOOD
    rejected(lambda: read_layer(GOOD.replace(*change)), *words)


@each_row(("attribute", "words", "value"), [(name, words, value) for name, words, values in VALUES for value in values])
def test_bad_values(attribute: str, words: str, value: str) -> None:
    text, count = re.subn(rf'\b{attribute}="[^"]*"', f'{attribute}="{value}"', GOOD)
    assert count == 1
    rejected(lambda: read_layer(text), LABEL, words)


OTHER_ATTRIBUTES = {  # type, version, attribute, value, words
    "another cell's": ("LSTMSequence", "opset5", "linear_before_reset", "false", "does not belong"),
    "a sequence's": ("LSTMCell", "opset5", "direction", "forward", "does not belong"),
    "linear_before_reset": ("GRUCell", "opset5", "linear_before_reset", "yes",
        "linear_before_reset is 'yes'; expected"),
    "weights_format": ("LSTMSequence", "opset5", "weights_format", "ifco", "does not belong to LSTMSequence-5"),
    "in version 1": ("LSTMSequence", "opset1", "input_forget", "2", "input_forget is '2'; expected true or false"),
    "other order in version 1": ("LSTMSequence", "opset1", "weights_format", "ifco", "weights_format is 'ifco';"),
}  # fmt: skip


@each_row(("kind", "version", "attribute", "value", "words"), OTHER_ATTRIBUTES.values(), ids=OTHER_ATTRIBUTES)
def test_bad_attributes_of_some_operations(kind: str, version: str, attribute: str, value: str, words: str) -> None:
    data = f'<data hidden_size="6" {attribute}="{value}"/>'
    text = f'<layer id="1" name="g" type="{kind}" version="{version}">{data}</layer>'
    rejected(lambda: read_layer(text), f"{kind} 'g' (id 1)", attribute, words)


UNKNOWN = [("Clip", "1"), ("hiddensize", "x"), ("input_forget", "false"), ("weights_format", "fico")]


@each_row(("attribute", "value"), UNKNOWN, ids=[attribute for attribute, _ in UNKNOWN])
def test_unknown_attribute_is_a_warning(attribute: str, value: str) -> None:
    """So are those of version 1, where they say what later versions do anyway."""
    text = GOOD.replace("<data ", f'<data {attribute}="{value}" ')
    with pytest.warns(PyrnnxWarning, match=rf"{re.escape(LABEL)}.*'{attribute}'.*no effect") as caught:
        layer = read_layer(text)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert layer == read_layer(GOOD)


@each_row("kind", TYPES)
def test_versions_before_the_first(kind: str) -> None:
    first = min(row.first_opset for row in OPERATIONS.values() if row.type == kind)
    read_layer(write(kind, attributes=f'id="3" name="one" version="opset{first}"'))
    for opset in range(first):
        text, words = write(kind, attributes=f'id="3" name="one" version="opset{opset}"'), f"opset{first} or later"
        rejected(lambda text=text: read_layer(text), f"{kind} 'one' (id 3)", f"'opset{opset}'", words)  # type: ignore[misc]


PORTS: dict[str, tuple[Change, tuple[str, ...]]] = {
    "no inputs": (("input>", "inputs>"), ("0 input ports", "expected 7", "sequence_lengths")),
    "no outputs": (("output>", "outputs>"), ("0 output ports", "expected 3", "Y, Ho, Co")),
    "too few inputs": (('<port id="6" precision="FP32"><dim>1</dim><dim>24</dim></port>', ""), ("6 input ports", "7")),
    "too many outputs": (("</output>", '<port id="99"/></output>'), ("4 output ports", "expected 3")),
    "input id twice": (('id="1" ', 'id="0" '), ("input port id 0", "twice")),
    "id that is no number": (('<port id="2"', '<port id="two"'), ("port id", "'two'")),
    "dimension that is no number": (("<dim>4</dim></port>", "<dim>four</dim></port>"), ("input port 0", "'four'")),
    "huge dimension": (("<dim>4</dim></port>", f"<dim>{2**63}</dim></port>"), ("input port 0", str(2**63))),
    "rank of X": (("<dim>5</dim><dim>4</dim>", "<dim>4</dim>"), ("port 0 (X)", "(3, 4)", "seq_length")),
    "lengths of another batch": (('"I32"><dim>3</dim>', '"I32"><dim>4</dim>'),
        ("port 3 (sequence_lengths)", "batch_size=3")),
    "input_size of W": (("<dim>24</dim><dim>4</dim>", "<dim>24</dim><dim>3</dim>"), ("port 4 (W)", "input_size=4")),
    "seq_length of Y": (("<dim>1</dim><dim>5</dim>", "<dim>1</dim><dim>4</dim>"), ("port 7 (Y)", "seq_length=5")),
    "directions of Co": (('9" precision="FP32"><dim>3</dim><dim>1', '9" precision="FP32"><dim>3</dim><dim>2'),
        ("port 9 (Co)", "num_directions=1")),
    "precision of X": (('id="0" precision="FP32"', 'id="0" precision="I32"'), ("port 0 (X)", "'I32'", "FP32")),
    "W of another precision": (('id="4" precision="FP32"', 'id="4" precision="FP16"'), ("port 4 (W)", "FP16", "FP32")),
    "unknown precision": (('id="0" precision="FP32"', 'id="0" precision="FP8"'), ("port 0 (X)", "'FP8'")),
}  # fmt: skip


@each_row(("change", "words"), PORTS.values(), ids=PORTS)
def test_bad_ports(change: Change, words: tuple[str, ...]) -> None:
    assert change[0] in GOOD
    count = -1 if change[0].endswith("put>") else 1  # a tag and its end; else the first
    rejected(lambda: read_layer(GOOD.replace(*change, count)), LABEL, *words)


def test_sizes_that_open_dimensions_leave_to_contradict() -> None:
    """The batch is open in X, but H and C differ in it."""
    text = GOOD.replace('"0" precision="FP32"><dim>3', '"0" precision="FP32"><dim>-1')
    text = text.replace('"2" precision="FP32"><dim>3', '"2" precision="FP32"><dim>4')
    rejected(lambda: read_layer(text), LABEL, "port 2 (C)", "batch_size=3")
