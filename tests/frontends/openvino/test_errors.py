"""Every bad XML, attribute, port and array is a PyrnnxError that names the layer and what is wrong in it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from numpy.typing import NDArray

import pyrnnx.frontends.openvino as frontend
from pyrnnx import PyrnnxError, PyrnnxWarning
from pyrnnx.frontends.openvino import read_layer

Array = NDArray[Any]
N, T, I, H = 3, 5, 4, 6

GOOD = """<layer id="17" name="decoder/lstm" type="LSTMSequence" version="opset5">
  <data direction="forward" hidden_size="6" activations="sigmoid,tanh,tanh" activations_alpha="" activations_beta=""
        clip="0.5"/>
  <input>
    <port id="0" precision="FP32"><dim>3</dim><dim>5</dim><dim>4</dim></port>
    <port id="1" precision="FP32"><dim>3</dim><dim>1</dim><dim>6</dim></port>
    <port id="2" precision="FP32"><dim>3</dim><dim>1</dim><dim>6</dim></port>
    <port id="3" precision="I32"><dim>3</dim></port>
    <port id="4" precision="FP32"><dim>1</dim><dim>24</dim><dim>4</dim></port>
    <port id="5" precision="FP32"><dim>1</dim><dim>24</dim><dim>6</dim></port>
    <port id="6" precision="FP32"><dim>1</dim><dim>24</dim></port>
  </input>
  <output>
    <port id="7" precision="FP32"><dim>3</dim><dim>1</dim><dim>5</dim><dim>6</dim></port>
    <port id="8" precision="FP32"><dim>3</dim><dim>1</dim><dim>6</dim></port>
    <port id="9" precision="FP32"><dim>3</dim><dim>1</dim><dim>6</dim></port>
  </output>
</layer>"""
LABEL = "LSTMSequence 'decoder/lstm' (id 17)"


def good_arrays() -> list[Array]:
    rng = np.random.default_rng(0)
    shapes = [(N, T, I), (N, 1, H), (N, 1, H), (N,), (1, 4 * H, I), (1, 4 * H, H), (1, 4 * H)]
    arrays = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes]
    arrays[3] = np.array([T, 0, 2], np.int32)
    return arrays


def rejected(call: Callable[[], Any], *words: str) -> str:
    with pytest.raises(PyrnnxError) as caught:
        call()
    message = str(caught.value)
    for word in words:
        assert word in message, f"{word!r} is not in {message!r}"
    return message


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
    "TensorIterator": (("LSTMSequence", "TensorIterator"), ("'decoder/lstm' (id 17)", "LSTMSequence")),
    "ONNX's name": (("LSTMSequence", "LSTM"), ("LSTM 'decoder/lstm' (id 17)", "LSTMSequence")),
    "version 1": (("opset5", "opset1"), (LABEL, "version", "'opset1'", "opset5")),
    "version 4": (("opset5", "opset4"), (LABEL, "'opset4'")),
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


@pytest.mark.parametrize("attribute", ["input_forget", "Clip", "hiddensize", "weights_format"])
def test_unknown_attribute_is_a_warning(attribute: str) -> None:
    text = GOOD.replace("<data ", f'<data {attribute}="x" ')
    with pytest.warns(PyrnnxWarning, match=rf"{re.escape(LABEL)}.*'{attribute}'.*no effect") as caught:
        layer = read_layer(text)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert layer == read_layer(GOOD)


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
    "dimension that is no number": (("<dim>4</dim></port>", "<dim>four</dim></port>"), ("port 0 (X)", "'four'")),
    "empty dimension": (("<dim>4</dim></port>", "<dim/></port>"), ("port 0 (X)", "dimension")),
    "fractional dimension": (("<dim>4</dim></port>", "<dim>4.0</dim></port>"), ("port 0 (X)", "'4.0'")),
    "negative dimension": (("<dim>4</dim></port>", "<dim>-2</dim></port>"), ("port 0 (X)", "'-2'", "-1 for dynamic")),
    "huge dimension": (("<dim>4</dim></port>", f"<dim>{2**63}</dim></port>"), ("port 0 (X)", str(2**63))),
    "endless dimension": (("<dim>4</dim></port>", f"<dim>{'9' * 400}</dim></port>"), ("port 0 (X)",)),
    "element in a dimension": (("<dim>4</dim></port>", "<dim><b>4</b></dim></port>"), ("port 0 (X)", "dimension")),
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
    "states without a shape": (("<dim>3</dim><dim>1</dim><dim>6</dim></port>", "</port>"), ("port 1 (H)", "()")),
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


# Arrays against ports

WRONG_ARRAYS: dict[str, tuple[int, Any, tuple[str, ...]]] = {  # place, array, words
    "X: rank": (0, np.zeros((N, I), np.float32), ("port 0 (X)", "(3, 4)", "(3, 5, 4)")),
    "X: time first": (0, np.zeros((T, N, I), np.float32), ("port 0 (X)", "(5, 3, 4)", "(3, 5, 4)")),
    "X: float64": (0, np.zeros((N, T, I)), ("port 0 (X)", "float64", "FP32")),
    "X: integers": (0, np.zeros((N, T, I), int), ("port 0 (X)", "int64", "FP32")),
    "X: None": (0, None, ("X",)),
    "X: text": (0, "X", ("port 0 (X)",)),
    "X: ragged": (0, [[1.0], [1.0, 2.0]], ("X",)),
    "X: masked": (0, np.ma.zeros((N, T, I), np.float32), ("X", "masked")),
    "H: batch second": (1, np.zeros((1, N, H), np.float32), ("port 1 (H)", "(1, 3, 6)", "(3, 1, 6)")),
    "C: None": (2, None, ("C",)),
    "C: another size": (2, np.zeros((N, 1, H + 1), np.float32), ("port 2 (C)", "(3, 1, 7)")),
    "lengths: int64": (3, np.array([5, 0, 2]), ("port 3 (sequence_lengths)", "int64", "I32")),
    "lengths: floats": (3, np.array([5.0, 0.0, 2.0], np.float32), ("sequence_lengths", "float32", "I32")),
    "lengths: list of floats": (3, [5.0, 0.0, 2.0], ("sequence_lengths", "float64")),
    "lengths: bools": (3, [True, False, True], ("sequence_lengths", "bool")),
    "lengths: too few": (3, np.array([5, 0], np.int32), ("sequence_lengths", "(2,)", "(3,)")),
    "lengths: too few in a list": (3, [5, 0], ("sequence_lengths", "(2,)", "batch_size=3")),
    "lengths: None": (3, None, ("sequence_lengths",)),
    "lengths: negative": (3, np.array([5, -1, 2], np.int32), ("sequence_lengths[1] is -1", "seq_length=5")),
    "lengths: too large": (3, np.array([5, 0, 6], np.int32), ("sequence_lengths[2] is 6", "seq_length=5")),
    "lengths: huge in a list": (3, [5, 0, 2**64], ("sequence_lengths",)),
    "W: not transposed": (4, np.zeros((1, I, 4 * H), np.float32), ("port 4 (W)", "(1, 4, 24)", "(1, 24, 4)")),
    "W: without directions": (4, np.zeros((4 * H, I), np.float32), ("port 4 (W)", "(24, 4)")),
    "W: float16": (4, np.zeros((1, 4 * H, I), np.float16), ("port 4 (W)", "float16", "FP32")),
    "W: None": (4, None, ("W",)),
    "R: another size": (5, np.zeros((1, 4 * H, H + 1), np.float32), ("port 5 (R)", "(1, 24, 7)")),
    "B: not summed": (6, np.zeros((1, 8 * H), np.float32), ("port 6 (B)", "(1, 48)", "(1, 24)")),
    "B: None": (6, None, ("B",)),
}


@pytest.mark.parametrize(("place", "array", "words"), WRONG_ARRAYS.values(), ids=WRONG_ARRAYS)
def test_arrays_that_do_not_fit_the_ports(place: int, array: Any, words: tuple[str, ...]) -> None:
    arrays: list[Any] = good_arrays()
    arrays[place] = array
    layer = read_layer(GOOD)
    rejected(lambda: layer(*arrays), LABEL, *words)
    if place > 3:
        rejected(lambda: layer.bind(*arrays[4:]), LABEL, *words)


def test_number_of_arrays() -> None:
    layer = read_layer(GOOD)
    arrays = good_arrays()
    names = "X, H, C, sequence_lengths, W, R, B"
    for given in ([], arrays[:1], arrays[:6], [*arrays, arrays[0]]):
        rejected(lambda given=given: layer(*given), LABEL, f"{len(given)} arrays", "expected 7", names)  # type: ignore[misc]
    bound = layer.bind(*arrays[4:])
    for given in (arrays, arrays[:3], []):
        rejected(lambda given=given: bound(*given), "LSTMSequence 'decoder/lstm'", f"{len(given)} arrays", "expected 4")  # type: ignore[misc]


def test_bound_layer_is_named_by_name_and_id() -> None:
    bound = read_layer(GOOD).bind(*good_arrays()[4:])
    arrays = good_arrays()[:4]
    arrays[0] = arrays[0][..., :2]
    rejected(lambda: bound(*arrays), LABEL, "X has shape (3, 5, 2)")


def test_arrays_that_contradict_each_other_where_ports_say_nothing() -> None:
    text = re.sub(r"<dim>\d+</dim>", "<dim>-1</dim>", re.sub(r' precision="\w+"', "", GOOD))
    layer = read_layer(text)
    wrong: dict[int, tuple[Any, tuple[str, ...]]] = {
        0: (np.zeros((N, T, I + 1), np.float32), ("X has shape (3, 5, 5)", "input_size=4")),
        1: (np.zeros((N + 1, 1, H), np.float32), ("H has shape (4, 1, 6)", "batch_size=3")),
        2: (np.zeros((N, 2, H), np.float32), ("C has shape (3, 2, 6)", "num_directions=1")),
        3: (np.zeros(N, np.float32), ("sequence_lengths", "float32")),
        4: (np.zeros((1, 4 * H, I), np.float64), ("float64",)),
        5: (np.zeros((1, 4 * H, H - 1), np.float32), ("R has shape (1, 24, 5)", "hidden_size=6")),
        6: (np.zeros((1, 3 * H), np.float32), ("B has shape (1, 18)", "4*hidden_size=24")),
    }
    for place, (array, words) in wrong.items():
        arrays: list[Any] = good_arrays()
        arrays[place] = array
        rejected(lambda arrays=arrays: layer(*arrays), LABEL, *words)  # type: ignore[misc]


# The functions

FUNCTIONS = ("rnn_sequence", "gru_sequence", "lstm_sequence", "rnn_cell", "gru_cell", "lstm_cell")
LABELS = {name: name.split("_")[0].upper() + name.split("_")[1].capitalize() for name in FUNCTIONS}
each_function = pytest.mark.parametrize("name", FUNCTIONS)


def function_arrays(name: str) -> dict[str, Any]:
    cell, kind = name.split("_")
    GH = {"rnn": 1, "gru": 3, "lstm": 4}[cell] * H
    shapes = {"X": (N, T, I), "H": (N, 1, H), "C": (N, 1, H), "W": (1, GH, I), "R": (1, GH, H), "B": (1, GH)}
    arrays: dict[str, Any] = {key: np.full(shape, 0.25, np.float32) for key, shape in shapes.items()}
    if kind == "cell":
        arrays = {key: a[:, 0] if key in "XHC" else a[0] for key, a in arrays.items()}
    else:
        arrays["sequence_lengths"] = [T, 0, 2]
    if cell != "lstm":
        del arrays["C"]
    return arrays


ATTRIBUTES: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"input_forget": True}, ("'input_forget'", "unknown", "hidden_size")),
    ({"activation_alpha": [1.0]}, ("'activation_alpha'", "unknown", "activations_alpha")),
    ({"layout": 1}, ("'layout'", "unknown")),
    ({"hidden_size": 0}, ("hidden_size is 0",)),
    ({"hidden_size": -6}, ("hidden_size is -6",)),
    ({"hidden_size": 6.0}, ("hidden_size is 6.0",)),
    ({"hidden_size": "6"}, ("hidden_size is '6'",)),
    ({"hidden_size": True}, ("hidden_size is True",)),
    ({"clip": -0.5}, ("clip is -0.5",)),
    ({"clip": float("nan")}, ("clip is nan",)),
    ({"clip": "0.5"}, ("clip is '0.5'",)),
    ({"clip": True}, ("clip is True",)),
    ({"clip": [0.5]}, ("clip is [0.5]",)),
    ({"activations": "tanh"}, ("activations is 'tanh'", "expected a list")),
    ({"activations": 3}, ("activations is 3", "expected a list")),
    ({"activations": [3]}, ("activations holds 3",)),
    ({"activations": ["tanh"] * 4}, ("activations has 4 names",)),
    ({"activations_alpha": "1.0"}, ("activations_alpha is '1.0'", "expected a list")),
    ({"activations_alpha": [1.0] * 4}, ("activations_alpha has 4 values",)),
    ({"activations_beta": ["1.0"]}, ("activations_beta holds '1.0'", "numbers")),
    ({"activations_beta": 1.0}, ("activations_beta is 1.0", "expected a list")),
]


@pytest.mark.parametrize(
    ("attributes", "words"), ATTRIBUTES, ids=[f"{key}={value}" for one, _ in ATTRIBUTES for key, value in one.items()]
)
@each_function
def test_bad_attributes_of_functions(name: str, attributes: dict[str, Any], words: tuple[str, ...]) -> None:
    call = getattr(frontend, name)
    call(**function_arrays(name))
    rejected(lambda: call(**function_arrays(name), **attributes), LABELS[name], *words)


@pytest.mark.parametrize("direction", ["backward", "", 1, None, ["forward"]], ids=repr)
@each_function
def test_bad_direction_of_functions(name: str, direction: Any) -> None:
    words = ("direction", "unknown") if name.endswith("cell") else ("direction", "expected one of forward")
    rejected(lambda: getattr(frontend, name)(**function_arrays(name), direction=direction), LABELS[name], *words)


@pytest.mark.parametrize("value", [1, 0, "true", None, 1.0], ids=repr)
def test_bad_linear_before_reset_of_functions(value: Any) -> None:
    for name in ("gru_sequence", "gru_cell"):
        call = getattr(frontend, name)
        rejected(
            lambda call=call, name=name: call(**function_arrays(name), linear_before_reset=value),  # type: ignore[misc]
            LABELS[name],
            f"linear_before_reset is {value!r}",
        )


def bad_arrays(name: str) -> Iterator[tuple[str, Any, tuple[str, ...]]]:
    for key, good in function_arrays(name).items():
        if key == "sequence_lengths":
            yield key, np.array([T, 0, 2], np.float32), ("sequence_lengths", "float32", "int32")
            yield key, np.array([T, 0, 2], bool), ("sequence_lengths", "bool")
            yield key, [T, 0, T + 1], ("sequence_lengths[2] is 6", "seq_length=5")
            yield key, [T, -1, 0], ("sequence_lengths[1] is -1",)
            yield key, [T, 0], ("sequence_lengths", "(2,)", "batch_size=3")
            yield key, T, ("sequence_lengths", "()")
            yield key, None, ("sequence_lengths", "required")
            continue
        yield key, None, (key, "required")
        yield key, good[np.newaxis], (key, str(good[np.newaxis].shape))
        yield key, good[0], (key, "expected")
        yield key, good.astype(np.float64), ("float64", "float32")
        yield key, good.astype(np.int32), (key, "int32", "float32")
        yield key, good.astype(np.complex64), (key, "complex64")
        yield key, good.astype(object), (key, "object")


BAD_ARRAYS = {
    f"{name}-{k}-{key}": (name, {key: array}, words)
    for name in FUNCTIONS
    for k, (key, array, words) in enumerate(bad_arrays(name))
}


@pytest.mark.parametrize(("name", "array", "words"), BAD_ARRAYS.values(), ids=BAD_ARRAYS)
def test_bad_arrays_of_functions(name: str, array: dict[str, Any], words: tuple[str, ...]) -> None:
    rejected(lambda: getattr(frontend, name)(**{**function_arrays(name), **array}), LABELS[name], *words)
