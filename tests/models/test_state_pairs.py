"""Pairs of outputs and inputs: by names, dtypes and shapes, or set by the caller."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rows import each_row

from pyrnnx import ArgumentError, Interval, TensorInfo
from pyrnnx.models.state_pairs import pairs_of
from pyrnnx.operator.tensor_info import may_agree

X, Y = TensorInfo("x", "float32", (1, 4)), TensorInfo("y", "float32", (1, 2))
STATE = (1, 8)


def state(name: str, dtype: str | None = "float32", shape: Any = STATE, **others: Any) -> TensorInfo:
    return TensorInfo(name, dtype, shape, **others)


# Names of an output and an input.
PAIRS = """stateN state, hn h, cn c0, h_n h_0, h_out h_in, c_out c0, new_h h, state_out state, next_mem mem, output_h h,
    out_h in_h, Ho H, Co C, conv_cache_out conv_cache, Y_h initial_h, final_state initial_state, h h0,
    mem_next mem_prev, present_3 past_3, hOut hIn, state state"""
NOT_PAIRS = "output input, stateN steady, y1 y2, n o, h_out c_in, h_out_2 h_in_2"


@each_row("names", PAIRS.split(","))
def test_names_that_belong_together(names: str) -> None:
    output, name = names.split()
    assert pairs_of("m", [X, state(name)], [Y, state(output)], None) == {output: name}


@each_row("names", NOT_PAIRS.split(","))
def test_names_that_do_not(names: str) -> None:
    output, name = names.split()
    assert pairs_of("m", [X, state(name)], [Y, state(output)], None) == {}


def test_several_states() -> None:
    inputs = [state("h"), X, state("c")]
    assert pairs_of("m", inputs, [Y, state("cn"), state("hn")], None) == {"cn": "c", "hn": "h"}


UNFIT: dict[str, tuple[TensorInfo, TensorInfo]] = {
    "dtype": (state("hn"), state("h", "float64")),
    "no dtype": (state("hn", None), state("h")),
    "rank": (state("hn", shape=(8,)), state("h")),
    "size": (state("hn", shape=(1, 9)), state("h")),
    "interval": (state("hn", shape=(1, Interval(9, 12))), state("h")),
    "below": (state("hn", shape=(1, Interval(2, 7))), state("h")),
}


@each_row("name", UNFIT)
def test_dtypes_and_shapes_have_to_agree(name: str) -> None:
    output, own = UNFIT[name]
    assert pairs_of("m", [X, own], [Y, output], None) == {}
    if name != "no dtype":  # a caller may know more than the file says
        with pytest.raises(ArgumentError, match=r"m: states: output 'hn' .* cannot be input 'h'"):
            pairs_of("m", [X, own], [Y, output], {"hn": "h"})


AGREE: list[tuple[Any, Any]] = [
    (None, (1, 2)),
    ((1, None), (1, 2)),
    (("N", 8), (3, 8)),
    ((Interval(2, None), 8), (3, 8)),
    ((Interval(2, 5),), (Interval(5, 7),)),
    ((), ()),
]


@each_row("shapes", AGREE, ids=repr)
def test_shapes_that_may_agree(shapes: tuple[Any, Any]) -> None:
    one, other = shapes
    assert may_agree(one, other)
    assert may_agree(other, one)


AMBIGUOUS: dict[str, tuple[list[TensorInfo], list[TensorInfo], str]] = {
    "two outputs": ([X, state("h")], [state("hn"), state("h_out")], "'hn' .* -> 'h' .*, 'h_out' .* -> 'h'"),
    "two inputs": ([X, state("h"), state("h0")], [Y, state("hn")], "'hn' .* -> 'h' .*, 'hn' .* -> 'h0'"),
    "nothing left": ([state("audio_in")], [state("audio_out")], "leave no input to push: 'audio_out' .* -> 'audio_in'"),
}


@each_row("name", AMBIGUOUS)
def test_more_than_one_way(name: str) -> None:
    inputs, outputs, message = AMBIGUOUS[name]
    with pytest.raises(ArgumentError, match=f"m: states: .*{message}"):
        pairs_of("m", inputs, outputs, None)


def test_given_by_names_and_aliases() -> None:
    inputs = [X, state("h", aliases=("hidden",)), state("c")]
    outputs = [Y, state("next", aliases=("n",)), state("c", None, None)]
    assert pairs_of("m", inputs, outputs, {"n": "hidden", "c": "c"}) == {"next": "h", "c": "c"}
    assert pairs_of("m", [X, state("h")], [Y, state("hn")], {}) == {}


WRONG: dict[str, tuple[Any, str]] = {
    "no mapping": ([("hn", "h")], "states is .*; expected a mapping"),
    "unknown output": ({"h": "h"}, "output 'h' is unknown; expected y, hn"),
    "unknown input": ({"hn": "H"}, "input 'H' is unknown; expected x, h, any"),
    "no name": ({"hn": 3}, "input 3 is unknown"),
    "several names": ({"hn": np.array(["h", "x"])}, r"input array\(\['h', 'x'\].* is unknown"),
    "input twice": ({"hn": "h", "y": "h"}, "states has input 'h' twice"),
    "no tensor": ({"hn": "any"}, "input 'any' declares no dtype"),
    "another shape": ({"y": "h"}, r"output 'y' \(float32 \[1, 2\]\) cannot be input 'h' \(float32 \[1, 8\]\)"),
}


@each_row("name", WRONG)
def test_errors(name: str) -> None:
    states, message = WRONG[name]
    with pytest.raises(ArgumentError, match=f"m: {message}|m: states: {message}"):
        pairs_of("m", [X, state("h"), state("any", None)], [Y, state("hn")], states)
