"""Stacks written as IR, run by OpenVINO and pyrnnx."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from lxml import etree
from peers import run_openvino
from rows import few_rows
from stacks import STACKS, random_inputs, random_layers, random_states

from pyrnnx import ONNX_LAYOUTS, OPENVINO_SEQUENCE, Layer, Stack, load
from pyrnnx.frontends import onnx
from pyrnnx.frontends.openvino import write_model

T, N = 6, 4
# float32 on all sides: sums of up to 20 terms in another order, through up to 3 layers whose outputs are below 1
TOLERANCE = 1e-5


def stack_of(name: str, batch_first: bool) -> Stack:
    """Without peepholes, which IR lacks."""
    conventions = (OPENVINO_SEQUENCE, ONNX_LAYOUTS[1], ONNX_LAYOUTS[0])
    return Stack(random_layers(STACKS[name], convention=conventions, names=True), batch_first=batch_first, name="one")


def flat(results: tuple[Any, ...]) -> list[Any]:
    return [a for one in results for a in (one if isinstance(one, list) else [one]) if a is not None]


def check(path: Path, feed: dict[str, Any], wanted: list[Any]) -> None:
    there = run_openvino(path, feed, fixed=True)  # else lengths are not looked at
    for results in (load(path)(feed).values(), there):
        for a, b in zip(results, wanted, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, atol=TOLERANCE, rtol=0)


@few_rows("name", [*STACKS][::2], [*STACKS][1::2])
def test_stacks(name: str, tmp_path: Path) -> None:
    """A stack of the layers that an .xml, or an .onnx of these, has is the stack that was written."""
    batch_first = len(name) % 2 == 0
    stack, path = stack_of(name, batch_first), tmp_path / "stack.xml"
    assert write_model(stack, path) == path
    X = random_inputs(stack, T, N)
    check(path, {"X": X}, flat(stack(X)))
    net = etree.parse(path).getroot()
    assert net.get("name") == "one"
    count = Counter(layer.get("type") for layer in net.iter("layer"))
    # IR has the batch first: at the ends of other stacks axes are swapped, and those of states always.
    assert count["Transpose"] <= 2 * (not batch_first) + stack.num_directions.count(2) + count["Result"] - 1
    again = Stack([layer for layer in load(path).layers.values() if isinstance(layer, Layer)])
    assert [layer.name for layer in again.layers] == [layer.name for layer in stack.layers]
    onnx.write_model(again, tmp_path / "stack.onnx")
    assert [layer.op for layer in load(tmp_path / "stack.onnx").layers.values()] == [layer.op for layer in stack.layers]


def test_lengths_and_states(tmp_path: Path) -> None:
    stack, path = stack_of("bidirectional", True), tmp_path / "stack.xml"
    write_model(onnx.write_model(stack, inputs=("sequence_lens", "initial_h", "initial_c")), path)
    X, states = random_inputs(stack, T, N), random_states(stack, N)
    h, c = (form.join(state) for form, state in zip(stack.state_forms, states, strict=True))
    lengths = np.array([6, 2, 1, 3], np.int32)
    feed = {"X": X, "sequence_lens": lengths, "initial_h": h, "initial_c": c}
    check(path, feed, list(stack(X, lengths, h, c)))
