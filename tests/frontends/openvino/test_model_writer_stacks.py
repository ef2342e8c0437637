"""Stacks written as IR: what OpenVINO and this library compute of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from stacks import STACKS, random_inputs, random_layers, random_states

from pyrnnx import ONNX_LAYOUTS, OPENVINO_SEQUENCE, PyrnnxError, Stack, load
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
    openvino = pytest.importorskip("openvino")
    model = openvino.Core().read_model(path)
    model.reshape({name: list(array.shape) for name, array in feed.items()})  # else lengths are not looked at
    compiled = openvino.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    there = compiled(feed)
    for results in (load(path)(feed).values(), [there[port] for port in compiled.outputs]):
        for a, b in zip(results, wanted, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("name", STACKS)
def test_stacks(name: str, batch_first: bool, tmp_path: Path) -> None:
    stack, path = stack_of(name, batch_first), tmp_path / "stack.xml"
    assert write_model(stack, path) == path
    X = random_inputs(stack, T, N)
    check(path, {"X": X}, flat(stack(X)))
    assert list(load(path).layers) == [layer.name for layer in stack.layers]
    net = etree.parse(path).getroot()
    assert net.get("name") == "one"
    found = Counter(layer.get("type") for layer in net.iter("layer"))
    # IR has the batch first: at the ends of other stacks axes are swapped, and those of states always.
    assert found["Transpose"] <= 2 * (not batch_first) + stack.num_directions.count(2) + found["Result"] - 1


def test_lengths_and_states(tmp_path: Path) -> None:
    stack, path = stack_of("bidirectional", True), tmp_path / "stack.xml"
    write_model(onnx.write_model(stack, inputs=("sequence_lens", "initial_h", "initial_c")), path)
    X, states = random_inputs(stack, T, N), random_states(stack, N)
    h, c = (form.together(state) for form, state in zip(stack.state_forms, states, strict=True))
    lengths = np.array([6, 2, 1, 3], np.int32)
    feed = {"X": X, "sequence_lens": lengths, "initial_h": h, "initial_c": c}
    check(path, feed, list(stack(X, lengths, h, c)))


def test_what_cannot_be_written(tmp_path: Path) -> None:
    peepholes = Stack(random_layers(STACKS["bidirectional"], names=True))
    with pytest.raises(PyrnnxError, match=r"^LSTM 'lstm_0': P \(peepholes\) was given; LSTMSequence-5 has none"):
        write_model(peepholes, tmp_path / "stack.xml")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", STACKS)
def test_there_and_back(name: str, tmp_path: Path) -> None:
    """A stack of the layers that an .xml, or an .onnx of these, has is the stack that was written."""
    stack = stack_of(name, False)
    X, states = random_inputs(stack, T, N), random_states(stack, N)
    given = [state for form, state in zip(stack.state_forms, states, strict=True) if form.exists]
    wanted = flat(stack(X, None, *given))
    from_ir = Stack(load(write_model(stack, tmp_path / "stack.xml")).layers.values())
    onnx.write_model(from_ir, tmp_path / "stack.onnx")
    from_onnx = Stack(load(tmp_path / "stack.onnx").layers.values())
    for again in (from_ir, from_onnx):
        assert [layer.name for layer in again.layers] == [layer.name for layer in stack.layers]
        for a, b in zip(flat(again(X, None, *given)), wanted, strict=True):
            np.testing.assert_allclose(a, b, atol=TOLERANCE, rtol=0)
