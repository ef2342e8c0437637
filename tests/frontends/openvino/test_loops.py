"""Loops of hand-written IRs: results, and errors of broken ones."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import openvino_loops as loops
import pytest
from rows import each_row

from pyrnnx import PyrnnxError
from pyrnnx.frontends.openvino import read_model, to_onnx

# float32: sums of some tens of terms in the same order
TOLERANCE = 1e-6
XML, BIN, ARRAYS = loops.looped("LSTM")


def changed(old: str, new: str) -> Callable[[], str]:
    return lambda: XML.replace(old, new, 1) if old in XML else pytest.fail(old)


FIRST = '<input external_port_id="0" internal_layer_id="0" internal_port_id="0" axis="1"/>'
OUTPUT = '<output external_port_id="3" internal_layer_id="45" axis="1"/>'
EDGE = '<edge from-layer="40" from-port="0" to-layer="1" to-port="0"/>'


def first(**changes: object) -> Callable[[], str]:
    """Another entry for X."""
    given = {"external_port_id": 0, "internal_layer_id": 0, "axis": 1, **changes}
    return changed(
        FIRST, loops.connection("input", **{key: value for key, value in given.items() if value is not None})
    )


BROKEN: dict[str, tuple[Callable[[], str], str]] = {
    "external port that does not exist": (first(external_port_id=9), "names input port 9; the layer has 0, 1, 2"),
    "internal layer that does not exist": (first(internal_layer_id=99), "'99' does not exist"),
    "internal layer of another type": (first(internal_layer_id=33), "is LSTMCell 'cell'"),
    "negative axis": (first(axis=-1), "axis -1"),
    "part_size 0": (first(part_size=0), "part_size 0"),
    "overlapping slices": (first(part_size=2), "part_size 2 and stride 1"),
    "slices of two elements": (first(part_size=2, stride=2), "part_size 2 and stride 2; expected a part_size of 1"),
    "unknown attribute": (first(speed=3), "attribute 'speed'"),
    "purpose": (first(purpose="current_iteration"), "purpose"),
    "unknown purpose": (first(purpose="fun", external_port_id=-1), "'fun'"),
    "no entry": (changed(FIRST, ""), "Parameter 'x' (id 0) has no entry"),
    "two entries": (changed(FIRST, FIRST * 2), "two entries"),
    "no entry of an output": (changed(OUTPUT, ""), "output 0 is used"),
    "output of a part": (changed(OUTPUT, OUTPUT.replace("axis", 'start="1" axis')), "start 1 and end -1"),
    "back edge to a slice": (changed(EDGE, EDGE.replace('to-layer="1"', 'to-layer="0"')), "is sliced"),
    "back edge to a Result": (changed(EDGE, EDGE.replace('to-layer="1"', 'to-layer="41"')),
        "expected the id of a Param"),
    "two back edges to one": (changed(EDGE, EDGE * 2), "two back edges lead to"),
    "cycle in a body": (lambda: XML.replace('from-layer="0" from-port="0" to-layer="32"',
        'from-layer="34" from-port="2" to-layer="32"'), "cycle"),
    "no layers in the body": (lambda: re.sub(r"<body><layers>.*?</layers>", "<body>", XML, flags=re.DOTALL),
        "no <layers>"),
    "weights of another shape": (lambda: XML.replace('hidden_size="6"', 'hidden_size="7"'), "hidden_size"),
    "nesting beyond what protobuf has": (lambda: loops.nested(40), "bodies"),
    "state of another shape": (lambda: XML.replace('shape="3,6"', 'shape="3,7"'), "has shape '3,7'"),
}  # fmt: skip


@each_row("name", BROKEN)
def test_broken_loops(name: str) -> None:
    make, words = BROKEN[name]
    text = make()
    for act in (lambda: to_onnx(read_model(text, BIN)), lambda: read_model(text, BIN)(*ARRAYS)):
        with pytest.raises(PyrnnxError, match=re.escape(words)):
            act()


@pytest.mark.parametrize("depth", [1, 5, 25])
def test_nested_bodies(depth: int) -> None:
    x = np.array([3], np.float32)
    assert next(iter(read_model(loops.nested(depth), b"")(x).values())).tolist() == [3]


def test_no_steps() -> None:
    """A sequence of none gives zeros, as the recurrent operations do."""
    X = np.zeros((3, 0, 4), np.float32)
    text = XML.replace('shape="3,5,4"', 'shape="3,?,4"').replace("<dim>5</dim>", "<dim>-1</dim>")
    Y, *states = read_model(text, BIN)(X, *ARRAYS[1:]).values()
    assert Y.shape == (3, 0, 6)
    assert not any(one.any() for one in states)
