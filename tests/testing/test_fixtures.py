"""The fixture for seeded inputs: its arrays, the same for the same test in any process."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from layers import random_layer
from onnx import helper
from rows import each_row

from pyrnnx import (
    ONNX_LAYOUTS,
    OPENVINO_CELL,
    OPENVINO_SEQUENCE,
    ArgumentError,
    Convention,
    Direction,
    RecurrentOp,
    load,
)
from pyrnnx.comparison.calls import prepared_call
from pyrnnx.frontends.onnx import from_node
from pyrnnx.frontends.openvino import read_layer, write_layer
from pyrnnx.operator.op import CELLS, CellName
from pyrnnx.testing import CASES, Case, assert_same
from pyrnnx.testing.fixtures import seeded_inputs

__all__ = ["seeded_inputs"]
Inputs = Callable[..., Any]
I, H = 4, 6
EXAMPLES = Path(__file__).parents[2] / "examples"


@each_row("convention", [*ONNX_LAYOUTS, OPENVINO_SEQUENCE, OPENVINO_CELL])
@each_row("cell", CELLS)
def test_a_layer_can_be_called_with_them(seeded_inputs: Inputs, cell: CellName, convention: Convention) -> None:
    layer = random_layer(RecurrentOp(cell, H), I, np.float64, convention=convention)
    inputs = seeded_inputs(layer)
    sizes = {"T": 5, "N": 3, "I": I, "D": 1, "H": H}
    assert inputs["X"].shape == tuple(sizes[axis] for axis in convention.axes_of("X"))
    assert inputs["X"].dtype == np.float64
    lengths = {name: array for name, array in inputs.items() if name.startswith("sequence_len")}
    assert all(set(array.tolist()) == {0, 1, 5} for array in lengths.values())
    assert all(array.all() for name, array in inputs.items() if name not in lengths)
    assert ("sequence_lens" in inputs) == (convention in ONNX_LAYOUTS)
    layer.run(**inputs)
    assert_same(layer, layer, inputs=inputs)


def test_sizes(seeded_inputs: Inputs) -> None:
    inputs = seeded_inputs(random_layer(RecurrentOp("LSTM", H, Direction.REVERSE), I), seq_length=9, batch_size=2)
    assert {name: array.shape for name, array in inputs.items()} == {
        "X": (9, 2, I),
        "sequence_lens": (2,),
        "initial_h": (1, 2, H),
        "initial_c": (1, 2, H),
    }


def test_weights_of_what_has_none(seeded_inputs: Inputs) -> None:
    layer = random_layer(RecurrentOp("GRU", H), I, convention=OPENVINO_SEQUENCE)
    unbound = read_layer(write_layer(layer, id=1))
    inputs = seeded_inputs(unbound)
    assert list(inputs) == ["X", "H", "sequence_lengths", "W", "R", "B"]
    unbound(**inputs)
    node = helper.make_node("LSTM", ["x", "w", "r", "", "", "h", "", "p"], ["Y"], hidden_size=H)
    inputs = seeded_inputs(node, opset=14)
    assert list(inputs) == ["x", "sequence_lens", "h", "initial_c", "w", "r", "p"]
    from_node(node, inputs)
    assert inputs["p"].all()
    assert_same(node, node, inputs=inputs)


def test_a_model_and_a_case(seeded_inputs: Inputs) -> None:
    model = load(EXAMPLES / "small_rnn.onnx")
    assert list(seeded_inputs(model)) == [info.name for info in model.inputs if not info.optional]
    case: Case = CASES[0]
    arrays = seeded_inputs(case)
    assert {name: array.shape for name, array in arrays.items()} == {name: case.shapes()[name] for name in arrays}


LAYER = random_layer(RecurrentOp("RNN", H), I)


def test_calls_differ_and_are_the_same_in_every_run(seeded_inputs: Inputs, request: pytest.FixtureRequest) -> None:
    first, second = seeded_inputs(LAYER)["X"], seeded_inputs(LAYER)["X"]
    assert not np.array_equal(first, second)
    seed = zlib.crc32(request.node.nodeid.encode())
    for call, array in ((1, first), (2, second)):
        number = int(np.random.default_rng((seed, call)).integers(2**31))
        np.testing.assert_array_equal(array, prepared_call(LAYER, LAYER, None, number)[1]["X"])


REJECTED: list[tuple[Any, dict[str, Any], str]] = [
    (len, {}, "what is <built-in function len>; expected a layer, a model or a Case"),
    (3, {}, "seeded_inputs: what is 3; expected a layer"),
    (CASES[0], {"batch_size": 2}, "batch_size is set; expected sizes only for layers"),
    (LAYER, {"seq_length": -1}, "seeded_inputs: seq_length is -1"),
]


@each_row(("what", "options", "words"), REJECTED, ids=[row[-1] for row in REJECTED])
def test_what_has_no_inputs(seeded_inputs: Inputs, what: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ArgumentError, match=r"^seeded_inputs: ") as caught:
        seeded_inputs(what, **options)
    assert words in str(caught.value)
