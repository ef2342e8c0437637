"""Every bad XML, attribute and port of a layer is a PyrnnxError that names the layer and what is wrong in it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from openvino_layers import GOOD, LABEL, good_arrays, rejected, write

from pyrnnx import PyrnnxWarning
from pyrnnx.frontends.openvino import OPERATIONS, read_layer
from pyrnnx.frontends.openvino.schemas import TYPES


def test_the_good_layer_is_good() -> None:
    outputs = read_layer(GOOD)(*good_arrays())
    assert all(np.isfinite(y).all() for y in outputs)


# XML that is broken, or more than XML should be

BROKEN: dict[str, tuple[Any, str]] = {
    "empty": ("", "empty"),
    "blanks": (" \n\t ", "empty"),
    "empty bytes": (b"", "empty"),
    "blank bytes": (b" \n", "empty"),
    "bytes that are no XML": (b"hidden_size = 128", "not well-formed"),
    "binary": (bytes(range(256)), "not well-formed"),
    "a gzip file": (b"\x1f\x8b\x08" + bytes(64), "looks like a gzip file"),
    "a zip file": (b"PK\x03\x04" + bytes(64), "looks like a zip file"),
    "an ONNX model": (b"\x08\x08\x12\x07pytorch", "looks like an ONNX model"),
    "weights": (np.arange(9, dtype=np.float32).tobytes(), "looks like binary data, as a .bin file"),
    "NUL": (b"\0" * 64, "not well-formed"),
    "bytes that are not UTF-8": (GOOD.replace("decoder", "d\xe4coder").encode("latin-1"), "not well-formed"),
    "half of it": (GOOD[: len(GOOD) // 2], "not well-formed"),
    "without the end": (GOOD.removesuffix("</layer>"), "not well-formed"),
    "cut within a tag": (GOOD[:30], "not well-formed"),
    "two roots": (GOOD + GOOD, "not well-formed"),
    "tags that cross": ("<layer><data></layer></data>", "not well-formed"),
    "attribute twice": (GOOD.replace('id="17"', 'id="17" id="18"'), "not well-formed"),
    "undeclared entity": (GOOD.replace("decoder", "&decoder;"), "not well-formed"),
    "encoding that does not exist": (b'<?xml version="1.0" encoding="klingon"?><layer/>', "not well-formed"),
    "surrogates": (GOOD.replace("decoder", "\ud800"), ""),
    "too deep": ("<layer>" + "<a>" * 100_000, "not well-formed"),
    "a whole net": (f"<net><layers>{GOOD}</layers></net>", "the root element is <net>; expected <layer>"),
    "another root": ("<Layer/>", "the root element is <Layer>"),
    "root in a namespace": (GOOD.replace("<layer ", '<layer xmlns="urn:a" '), "the root element is <{urn:a}layer>"),
}
DTD = '<!DOCTYPE layer [<!ENTITY a "decoder"><!ENTITY ext SYSTEM "file:///etc/passwd">]>'
LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 10))
DOCTYPES = {
    "empty document type": "<!DOCTYPE layer>" + GOOD,
    "external document type": '<!DOCTYPE layer SYSTEM "http://localhost:1/layer.dtd">' + GOOD,
    "public document type": '<!DOCTYPE layer PUBLIC "-//a//b" "layer.dtd">' + GOOD,
    "entity that is not used": DTD + GOOD,
    "entity": DTD + GOOD.replace("decoder", "&a;"),
    "external entity": DTD + GOOD.replace("<input>", "&ext;<input>"),
    "external entity in a dimension": DTD + GOOD.replace("<dim>5</dim>", "<dim>&ext;</dim>"),
    "parameter entity": '<!DOCTYPE layer [<!ENTITY % p SYSTEM "file:///etc/passwd"> %p;]>' + GOOD,
    "billion laughs": f'<!DOCTYPE layer [<!ENTITY l0 "ha">{LAUGHS}]>' + GOOD.replace("decoder", "&l9;"),
    "billion laughs in a dimension": f'<!DOCTYPE layer [<!ENTITY l0 "1">{LAUGHS}]>' + GOOD.replace(">5<", ">&l9;<"),
    "default attributes": '<!DOCTYPE layer [<!ATTLIST data hidden_size CDATA "6">]>'
    + GOOD.replace(' hidden_size="6"', ""),
}


@pytest.mark.parametrize(("xml", "words"), BROKEN.values(), ids=BROKEN)
def test_broken_xml(xml: Any, words: str) -> None:
    rejected(lambda: read_layer(xml), "read_layer", words)


@pytest.mark.parametrize("as_bytes", [False, True], ids=["text", "bytes"])
@pytest.mark.parametrize("xml", DOCTYPES.values(), ids=DOCTYPES)
def test_document_types_are_refused(xml: str, as_bytes: bool) -> None:
    message = rejected(lambda: read_layer(xml.encode() if as_bytes else xml), "read_layer")
    assert "DTD" in message or "not well-formed" in message
    assert "root:" not in message  # of /etc/passwd


def test_document_type_of_an_element_that_was_parsed_elsewhere() -> None:
    """Whoever parsed it has expanded it or not; what is not expanded is not taken for text."""
    element = etree.fromstring((DTD + GOOD.replace(">5<", ">&ext;<")).encode(), etree.XMLParser(resolve_entities=False))
    rejected(lambda: read_layer(element), "17")


@pytest.mark.parametrize("xml", [None, 3, 3.5, [], {}, object(), ["<layer/>"]], ids=lambda xml: type(xml).__name__)
def test_what_is_no_xml_at_all(xml: Any) -> None:
    rejected(lambda: read_layer(xml), "read_layer", type(xml).__name__, "expected XML text")


def test_what_is_an_element_but_not_of_a_layer() -> None:
    rejected(lambda: read_layer(etree.Comment("layer")), "read_layer")
    rejected(lambda: read_layer(etree.ElementTree(etree.fromstring(GOOD))), "read_layer")


def test_paths_that_cannot_be_read(tmp_path: Path) -> None:
    rejected(lambda: read_layer(tmp_path / "absent.xml"), "read_layer", "absent.xml", "cannot be read")
    rejected(
        lambda: read_layer("absent.xml"), "read_layer", "'absent.xml' cannot be read", "expected XML text or a path"
    )
    rejected(lambda: read_layer(tmp_path), "read_layer", "cannot be read")
    rejected(lambda: read_layer("a\0b"), "read_layer", "cannot be read")
    (tmp_path / "empty.xml").write_bytes(b"")
    rejected(lambda: read_layer(tmp_path / "empty.xml"), "read_layer", "empty")


# The element and its <data>

Change = tuple[str, str]  # this text of GOOD, by that
DATA = re.search(r"<data.*?/>", GOOD, re.DOTALL)
assert DATA

ELEMENT: dict[str, tuple[Change, tuple[str, ...]]] = {
    "no type": ((' type="LSTMSequence"', ""), ("'decoder/lstm' (id 17)", "type", "LSTMSequence")),
    "empty type": (("LSTMSequence", ""), ("'decoder/lstm' (id 17)", "type")),
    "another type": (
        ("LSTMSequence", "Convolution"),
        ("Convolution 'decoder/lstm' (id 17)", "not a recurrent operation"),
    ),
    "TensorIterator": (
        ("LSTMSequence", "TensorIterator"),
        ("'decoder/lstm' (id 17)", "a loop", "UnrollTensorIterator"),
    ),
    "Loop": (("LSTMSequence", "Loop"), ("Loop 'decoder/lstm' (id 17)", "a loop", "unrolled")),
    "If": (("LSTMSequence", "If"), ("If 'decoder/lstm' (id 17)", "two bodies")),
    "AUGRUSequence": (("LSTMSequence", "AUGRUSequence"), ("AUGRUSequence 'decoder/lstm'", "attention", "OpenVINO")),
    "AUGRUCell in small letters": (("LSTMSequence", "augrucell"), ("augrucell 'decoder/lstm'", "attention")),
    "ONNX's name": (("LSTMSequence", "LSTM"), ("LSTM 'decoder/lstm' (id 17)", "LSTMSequence")),
    "version 0": (("opset5", "opset0"), (LABEL, "version", "'opset0'", "opset1")),
    "huge version": (("opset5", f"opset{'9' * 400}"), (LABEL, "version")),
    "version in other digits": (("opset5", "opset\u0665"), (LABEL, "version")),
    "version of another kind": (("opset5", "extension"), (LABEL, "'extension'")),
    "version without a number": (("opset5", "opset"), (LABEL, "'opset'")),
    "version with a sign": (("opset5", "opset-5"), (LABEL, "'opset-5'")),
    "empty version": (("opset5", ""), (LABEL, "version", "''")),
    "no data": ((DATA[0], ""), (LABEL, "hidden_size", "missing")),
    "no hidden_size": ((' hidden_size="6"', ""), (LABEL, "hidden_size", "missing")),
}
VALUES: dict[str, Sequence[tuple[str, tuple[str, ...]]]] = {  # attribute: value and words
    "hidden_size": [
        (value, ("hidden_size",))
        for value in ("", " ", "0", "-6", "6.0", "6.5", "1e3", "six", "0x6", "6,6", "nan", "inf", "+6 6", "9" * 400)
    ]
    + [("7", ("hidden_size=7",)), ("99999999999", ("hidden_size",)), ("9223372036854775808", ("hidden_size",))],
    "direction": [(value, ("direction", value)) for value in ("forwards", "backward", "both", "1", "forward,reverse")]
    + [("", ("direction",)), ("bidirectional", ("num_directions=2",))],
    "activations": [
        ("sigmoid,tanh", ("activations", "expected 3")),
        ("sigmoid,tanh,tanh,tanh", ("activations", "expected 3")),
        ("sigmoid,tanh,tanh,sigmoid,tanh,tanh", ("activations", "expected 3")),
        ("sigmoid,tanh,", ("''", "unknown")),
        ("sigmoid,,tanh", ("''", "unknown")),
        ("sigmoid;tanh;tanh", ("activations", "expected 3")),
        ("sigmoid,tanh,swish", ("'swish'", "unknown", "Tanh")),
        ("sigmoid,tanh,scaledtanh", ("ScaledTanh", "alpha")),
    ],
    "activations_alpha": [
        ("1,2,3,4", ("activations_alpha", "4")),
        ("one", ("activations_alpha", "'one'", "numbers")),
        ("1,,2", ("activations_alpha", "numbers")),
        ("1;2", ("activations_alpha", "numbers")),
    ],
    "activations_beta": [
        ("1,2,3,4", ("activations_beta", "4")),
        ("0.5 0.5", ("activations_beta", "numbers")),
    ],
    "clip": [(value, ("clip",)) for value in ("-0.5", "-inf", "nan", "", "none", "0,5", "0x1", "1 2")],
}


@pytest.mark.parametrize(("change", "words"), ELEMENT.values(), ids=ELEMENT)
def test_bad_elements(change: Change, words: tuple[str, ...]) -> None:
    assert change[0] in GOOD
    rejected(lambda: read_layer(GOOD.replace(*change)), *words)


BAD_VALUES = {
    f"{attribute}={value[:30]!r}": (attribute, value, words)
    for attribute, rows in VALUES.items()
    for value, words in rows
}


@pytest.mark.parametrize(("attribute", "value", "words"), BAD_VALUES.values(), ids=BAD_VALUES)
def test_bad_values(attribute: str, value: str, words: tuple[str, ...]) -> None:
    text, count = re.subn(rf'\b{attribute}="[^"]*"', f'{attribute}="{value}"', GOOD)
    assert count == 1
    rejected(lambda: read_layer(text), LABEL, *words)


@pytest.mark.parametrize("value", ["yes", "", "2", "-1", "0.0"])
def test_bad_linear_before_reset(value: str) -> None:
    text = f'<layer id="1" name="g" type="GRUCell"><data hidden_size="6" linear_before_reset="{value}"/></layer>'
    rejected(lambda: read_layer(text), "GRUCell 'g' (id 1)", "linear_before_reset", repr(value), "true or false")


def test_parameters_that_are_not_finite() -> None:
    for value in ("nan", "inf", "-inf", "1e999"):
        text = GOOD.replace("sigmoid,tanh,tanh", "elu,tanh,tanh").replace('alpha=""', f'alpha="{value}"')
        rejected(lambda text=text: read_layer(text), LABEL, "Elu", "alpha")  # type: ignore[misc]


@pytest.mark.parametrize(("kind", "attribute"), [("LSTMSequence", "linear_before_reset"), ("LSTMCell", "direction")])
def test_attribute_of_another_operation_is_an_error(kind: str, attribute: str) -> None:
    text = GOOD.replace("LSTMSequence", kind)
    if kind == "LSTMSequence":
        text = text.replace("<data ", '<data linear_before_reset="false" ')
    rejected(lambda: read_layer(text), f"{kind} 'decoder/lstm' (id 17)", attribute, "does not belong")


UNKNOWN = [("Clip", "1"), ("hiddensize", "x"), ("input_forget", "false"), ("weights_format", "fico")]


@pytest.mark.parametrize(("attribute", "value"), UNKNOWN, ids=[attribute for attribute, _ in UNKNOWN])
def test_unknown_attribute_is_a_warning(attribute: str, value: str) -> None:
    """So are those of version 1, where they say what later versions do anyway."""
    text = GOOD.replace("<data ", f'<data {attribute}="{value}" ')
    with pytest.warns(PyrnnxWarning, match=rf"{re.escape(LABEL)}.*'{attribute}'.*no effect") as caught:
        layer = read_layer(text)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert layer == read_layer(GOOD)


VERSION_1 = {
    "input_forget": ("opset5", "input_forget", "true", ("'input_forget'", "does not belong to LSTMSequence-5")),
    "weights_format": ("opset5", "weights_format", "ifco", ("'weights_format'", "does not belong to LSTMSequence-5")),
    "no boolean": ("opset5", "input_forget", "x", ("input_forget is 'x'", "true or false")),
    "no boolean in version 1": ("opset1", "input_forget", "2", ("input_forget is '2'", "true or false")),
    "other order in version 1": ("opset1", "weights_format", "ifco", ("weights_format is 'ifco'", "'fico'")),
    "empty order in version 1": ("opset1", "weights_format", "", ("weights_format is ''", "'fico'")),
}


@pytest.mark.parametrize(("version", "attribute", "value", "words"), VERSION_1.values(), ids=VERSION_1)
def test_bad_attributes_of_version_1(version: str, attribute: str, value: str, words: tuple[str, ...]) -> None:
    text = GOOD.replace("opset5", version).replace("<data ", f'<data {attribute}="{value}" ')
    rejected(lambda: read_layer(text), LABEL, *words)


@pytest.mark.parametrize("kind", TYPES)
def test_versions_before_the_first(kind: str) -> None:
    first = min(row.first_opset for row in OPERATIONS.values() if row.type == kind)
    read_layer(write(kind, attributes=f'id="3" name="one" version="opset{first}"'))
    for opset in range(first):
        text, words = write(kind, attributes=f'id="3" name="one" version="opset{opset}"'), f"opset{first} or later"
        rejected(lambda text=text: read_layer(text), f"{kind} 'one' (id 3)", f"'opset{opset}'", words)  # type: ignore[misc]


def test_good_layer_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_layer(GOOD)


# Ports

PORTS: dict[str, tuple[Change, tuple[str, ...]]] = {
    "no inputs": (("input>", "inputs>"), ("0 input ports", "expected 7", "sequence_lengths")),
    "no outputs": (("output>", "outputs>"), ("0 output ports", "expected 3", "Y, Ho, Co")),
    "too few inputs": (('<port id="6" precision="FP32"><dim>1</dim><dim>24</dim></port>', ""), ("6 input ports", "7")),
    "too many inputs": (("</input>", '<port id="99"/></input>'), ("8 input ports", "expected 7")),
    "too few outputs": (
        ('<port id="9" precision="FP32"><dim>3</dim><dim>1</dim><dim>6</dim></port>', ""),
        ("2 output", "3"),
    ),
    "too many outputs": (("</output>", '<port id="99"/></output>'), ("4 output ports", "expected 3")),
    "input id twice": (('id="1" ', 'id="0" '), ("input port id 0", "twice")),
    "output id twice": (('id="8"', 'id="7"'), ("output port id 7", "twice")),
    "the same id written differently": (('id="1" ', 'id="00" '), ("input port id 0", "twice")),
    "no id": (('<port id="2"', "<port"), ("port id", "''")),
    "id that is no number": (('<port id="2"', '<port id="two"'), ("port id", "'two'")),
    "negative id": (('<port id="2"', '<port id="-2"'), ("port id", "'-2'")),
    "fractional id": (('<port id="2"', '<port id="2.0"'), ("port id", "'2.0'")),
    "huge id": (('<port id="2"', f'<port id="{"7" * 5000}"'), ("port id",)),
    "dimension that is no number": (("<dim>4</dim></port>", "<dim>four</dim></port>"), ("input port 0", "'four'")),
    "empty dimension": (("<dim>4</dim></port>", "<dim/></port>"), ("input port 0", "dimension")),
    "fractional dimension": (("<dim>4</dim></port>", "<dim>4.0</dim></port>"), ("input port 0", "'4.0'")),
    "negative dimension": (("<dim>4</dim></port>", "<dim>-2</dim></port>"), ("input port 0", "'-2'", "-1 for dynamic")),
    "huge dimension": (("<dim>4</dim></port>", f"<dim>{2**63}</dim></port>"), ("input port 0", str(2**63))),
    "endless dimension": (("<dim>4</dim></port>", f"<dim>{'9' * 400}</dim></port>"), ("input port 0", "dimension")),
    "element in a dimension": (("<dim>4</dim></port>", "<dim><b>4</b></dim></port>"), ("input port 0", "dimension")),
    "rank of X": (("<dim>5</dim><dim>4</dim>", "<dim>4</dim>"), ("port 0 (X)", "(3, 4)", "seq_length")),
    "rank of B": (
        ("<dim>1</dim><dim>24</dim></port>", "<dim>24</dim></port>"),
        ("port 6 (B)", "(24,)", "4*hidden_size=24"),
    ),
    "rank of lengths": (
        ('"I32"><dim>3</dim>', '"I32"><dim>3</dim><dim>1</dim>'),
        ("port 3 (sequence_lengths)", "(3, 1)"),
    ),
    "lengths of another batch": (
        ('"I32"><dim>3</dim>', '"I32"><dim>4</dim>'),
        ("port 3 (sequence_lengths)", "batch_size=3"),
    ),
    "rank of states": (
        ("<dim>3</dim><dim>1</dim><dim>6</dim></port>", "<dim>6</dim></port>"),
        ("port 1 (H)", "(6,)", "num_directions"),
    ),
    "hidden_size of W": (
        ("<dim>24</dim><dim>4</dim>", "<dim>20</dim><dim>4</dim>"),
        ("port 4 (W)", "4*hidden_size=24"),
    ),
    "hidden_size of R": (("<dim>24</dim><dim>6</dim>", "<dim>24</dim><dim>5</dim>"), ("port 5 (R)", "hidden_size=6")),
    "input_size of W": (("<dim>24</dim><dim>4</dim>", "<dim>24</dim><dim>3</dim>"), ("port 4 (W)", "input_size=4")),
    "bias not summed": (("<dim>24</dim></port>\n  </input>", "<dim>48</dim></port>\n  </input>"), ("port 6 (B)", "24")),
    "seq_length of Y": (("<dim>1</dim><dim>5</dim>", "<dim>1</dim><dim>4</dim>"), ("port 7 (Y)", "seq_length=5")),
    "axes of Y": (("<dim>3</dim><dim>1</dim><dim>5</dim>", "<dim>3</dim><dim>5</dim><dim>1</dim>"), ("port 7 (Y)",)),
    "batch_size of Ho": (('8" precision="FP32"><dim>3', '8" precision="FP32"><dim>4'), ("port 8 (Ho)", "batch_size=3")),
    "directions of Co": (
        ('9" precision="FP32"><dim>3</dim><dim>1', '9" precision="FP32"><dim>3</dim><dim>2'),
        ("port 9 (Co)", "num_directions=1"),
    ),
    "precision of lengths": (('"I32"', '"FP32"'), ("port 3 (sequence_lengths)", "'FP32'", "I32")),
    "precision of X": (('id="0" precision="FP32"', 'id="0" precision="I32"'), ("port 0 (X)", "'I32'", "FP32")),
    "unknown precision": (('id="0" precision="FP32"', 'id="0" precision="FP8"'), ("port 0 (X)", "'FP8'")),
    "empty precision": (('id="0" precision="FP32"', 'id="0" precision=""'), ("port 0 (X)", "''")),
    "W of another precision": (('id="4" precision="FP32"', 'id="4" precision="FP16"'), ("port 4 (W)", "FP16", "FP32")),
    "Y of another precision": (('id="7" precision="FP32"', 'id="7" precision="FP64"'), ("port 7 (Y)", "FP64", "FP32")),
}


@pytest.mark.parametrize(("change", "words"), PORTS.values(), ids=PORTS)
def test_bad_ports(change: Change, words: tuple[str, ...]) -> None:
    assert change[0] in GOOD
    count = -1 if change[0].endswith("put>") else 1  # a tag and its end; else the first
    rejected(lambda: read_layer(GOOD.replace(*change, count)), LABEL, *words)


def test_sizes_that_open_dimensions_leave_to_contradict() -> None:
    """The batch is open in X, but H and C differ in it."""
    text = GOOD.replace('"0" precision="FP32"><dim>3', '"0" precision="FP32"><dim>-1')
    text = text.replace('"2" precision="FP32"><dim>3', '"2" precision="FP32"><dim>4')
    rejected(lambda: read_layer(text), LABEL, "port 2 (C)", "batch_size=3")
