"""Stacks written as IR, run by OpenVINO and pyrnnx."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from peers import run_openvino
from rows import few_rows
from stacks import STACKS, random_inputs, random_layers, random_states

from pyrnnx import ONNX_LAYOUTS, OPENVINO_SEQUENCE, Stack, load
from pyrnnx.frontends import onnx
from pyrnnx.frontends.openvino import write_model

T, N = 6, 4
# float32 on all sides: sums of up to 20 terms in another order, through up to 3 layers whose outputs are below 1
TOLERANCE = 1e-5


def stack_of(name: str, batch_first: bool) -> Stack:
    """Without peepholes, which IR lacks."""
    conventions = (OPENVINO_SEQUENCE, ONNX_LAYOUTS[1], ONNX_LAYOUTS[0])
    return Stack(random_layers(STACKS[name], convention=conventions, names=True), batch_first=batch_first, name="one")


def check(path: Path, feed: dict[str, Any], wanted: list[Any]) -> None:
    there = run_openvino(path, feed, fixed=True)  # else lengths are not looked at
    for results in (load(path)(feed).values(), there):
        for a, b in zip(results, wanted, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, atol=TOLERANCE, rtol=0)


@few_rows("name", [*STACKS][::2], [*STACKS][1::2])
def test_stacks(name: str, tmp_path: Path) -> None:
    stack, path = stack_of(name, len(name) % 2 == 0), tmp_path / "stack.xml"
    assert write_model(stack, path) == path
    X = random_inputs(stack, T, N)
    results = [a for one in stack(X) for a in (one if isinstance(one, list) else [one]) if a is not None]
    check(path, {"X": X}, results)
    assert list(load(path).layers) == [layer.name for layer in stack.layers]


def test_lengths_and_states(tmp_path: Path) -> None:
    stack, path = stack_of("bidirectional", True), tmp_path / "stack.xml"
    write_model(onnx.write_model(stack, inputs=("sequence_lens", "initial_h", "initial_c")), path)
    X, states = random_inputs(stack, T, N), random_states(stack, N)
    h, c = (form.join(state) for form, state in zip(stack.state_forms, states, strict=True))
    lengths = np.array([6, 2, 1, 3], np.int32)
    feed = {"X": X, "sequence_lens": lengths, "initial_h": h, "initial_c": c}
    check(path, feed, list(stack(X, lengths, h, c)))
