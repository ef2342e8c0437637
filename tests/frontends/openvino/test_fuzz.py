"""A valid IR, altered at random: whatever comes of it, only PyrnnxError and PyrnnxWarning ever come out."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable

import openvino_nets as nets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from pyrnnx import PyrnnxError, PyrnnxWarning
from pyrnnx.frontends.openvino import read_model

XML, BIN = nets.lstm_net()
VALUES = (
    "", " ", "0", "1", "-1", "7", "8", "9", "10", "1.5", "1e9", "nan", "inf", "true", "?", "...", "1..", "..8", "3,4",
    "f32", "f16", "i4", "u1", "string", "FP32", "I64", "LSTMSequence", "Const", "Parameter", "Result", "opset1",
    "opset5", "bidirectional", "sigmoid,tanh", "9" * 30, str(2**63), str(2**64), "\u0665", "\\,", "\n",
)  # fmt: skip
NAMES = (
    "id",
    "name",
    "type",
    "version",
    "shape",
    "element_type",
    "offset",
    "size",
    "precision",
    "names",
    "hidden_size",
)
Mutation = Callable[[etree._Element, random.Random], None]


def _elements(root: etree._Element) -> list[etree._Element]:
    return [element for element in root.iter() if element.getparent() is not None]


def set_attribute(root: etree._Element, rng: random.Random) -> None:
    element = rng.choice([root, *_elements(root)])
    element.set(str(rng.choice([*element.attrib, rng.choice(NAMES)])), rng.choice(VALUES))


def delete_attribute(root: etree._Element, rng: random.Random) -> None:
    element = rng.choice([one for one in root.iter() if one.attrib] or [root])
    if element.attrib:
        del element.attrib[rng.choice(list(element.attrib))]


def swap_attributes(root: etree._Element, rng: random.Random) -> None:
    a, b = rng.choice(_elements(root)), rng.choice(_elements(root))
    if a.attrib and b.attrib:
        key, other = rng.choice(list(a.attrib)), rng.choice(list(b.attrib))
        a.attrib[key], b.attrib[other] = b.attrib[other], a.attrib[key]


def set_text(root: etree._Element, rng: random.Random) -> None:
    rng.choice(list(root.iter("dim")) or [root]).text = rng.choice(VALUES)


def delete_element(root: etree._Element, rng: random.Random) -> None:
    element = rng.choice(_elements(root))
    element.getparent().remove(element)  # type: ignore[union-attr]


def duplicate_element(root: etree._Element, rng: random.Random) -> None:
    element = rng.choice(_elements(root))
    element.addnext(etree.fromstring(etree.tostring(element, with_tail=False)))


def move_element(root: etree._Element, rng: random.Random) -> None:
    element, parent = rng.choice(_elements(root)), rng.choice(_elements(root))
    if element not in parent.iterancestors() and element is not parent:
        parent.append(element)


def rename_element(root: etree._Element, rng: random.Random) -> None:
    rng.choice(_elements(root)).tag = rng.choice(("layer", "data", "input", "output", "port", "dim", "edge", "other"))


MUTATIONS: tuple[Mutation, ...] = (
    set_attribute, set_attribute, set_attribute, delete_attribute, swap_attributes, set_text, delete_element,
    duplicate_element, move_element, rename_element,
)  # fmt: skip


def read(xml: str | bytes, weights: bytes, *, run: bool = False) -> None:
    """Read the model and all of its layers, and run it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", PyrnnxWarning)
        try:
            model = read_model(xml, weights)
            repr(model)
            for key in model.layers:
                repr(model.layers[key])
            if run:
                model(nets.lstm_inputs())
        except PyrnnxError as error:
            assert str(error)  # noqa: PT017  # what is tested is that nothing else is raised


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_mutated_elements(seed: int, count: int) -> None:
    rng = random.Random(seed)
    root = etree.fromstring(XML.encode())
    for _ in range(count):
        if _elements(root):
            rng.choice(MUTATIONS)(root, rng)
    read(etree.tostring(root), BIN)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200)
def test_mutated_attributes_of_models_that_are_run(seed: int) -> None:
    pytest.importorskip("onnx")
    rng = random.Random(seed)
    root = etree.fromstring(XML.encode())
    rng.choice((set_attribute, delete_attribute, set_text))(root, rng)
    read(etree.tostring(root), BIN, run=True)


@given(st.integers(0, len(XML)), st.integers(0, len(XML)), st.binary(max_size=3))
@settings(max_examples=300)
def test_mutated_bytes(start: int, end: int, instead: bytes) -> None:
    data = XML.encode()
    read(data[:start] + instead + data[min(end, start + 8) if end > start else start :], BIN)


@given(st.integers(0, len(XML)), st.integers(0, len(BIN)))
@settings(max_examples=100)
def test_truncated_files(length: int, weights: int) -> None:
    read(XML.encode()[:length], BIN)
    read(XML, BIN[:weights])


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_noise(data: bytes) -> None:
    read(data, BIN)
    read(b"<net version='11'>" + data, BIN)
