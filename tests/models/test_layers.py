"""`model.layers`: by name and by index, wrong names, and models without layers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from rows import each_row
from verdicts import model

from pyrnnx import ArgumentError, Layers, load
from pyrnnx.frontends.openvino import read_model, write_model
from pyrnnx.models.layers import why_none


def two_layers(made: list[str]) -> Layers[Any]:
    def make(source: str) -> str:
        made.append(source)
        return source.upper()

    return Layers("m.onnx", {"encoder": "e", "decoder": "d"}, make)


def test_names_and_places() -> None:
    made: list[str] = []
    layers = two_layers(made)
    assert (list(layers), len(layers), made) == (["encoder", "decoder"], 2, [])
    assert [layers[key] for key in ("decoder", np.int64(1), -1, 0, -2, "encoder")] == ["D", "D", "D", "E", "E", "E"]
    assert made == ["d", "e"]  # each once, when it is asked for
    assert "encoder" in layers
    assert "0" not in layers
    assert dict(layers) == {"encoder": "E", "decoder": "D"}
    assert repr(layers) == "<layers 'encoder', 'decoder'>"


@each_row("key", ["encodr", 2, -3, None, True, 1.0])
def test_what_is_not_there(key: Any) -> None:
    layers = two_layers([])
    with pytest.raises(ArgumentError) as caught:
        layers[key]
    text = str(caught.value)
    assert text.startswith(
        f"m.onnx: layers has no {key!r}; expected one of 'encoder', 'decoder', or an index from 0 to 1"
    )
    assert text.endswith("; did you mean 'encoder'?") == (key == "encodr")
    assert isinstance(caught.value, KeyError)  # so that it is a mapping to everybody
    assert layers.get(key) is None


def unrolled(steps: int) -> onnx.ModelProto:
    """h = Tanh(X + h R), written out for each step."""
    nodes, h = "", "X"
    for k in range(steps):
        nodes += f" p{k} = MatMul({h}, R) s{k} = Add(p{k}, X) h{k} = Tanh(s{k})"
        h = f"h{k}"
    return model(f"(float[2, 3] X) => (float[2, 3] {h}) {{ {nodes} }}", R=np.eye(3, dtype=np.float32))


def test_unrolled_layers_are_told(tmp_path: Path) -> None:
    for read in (load(unrolled(4)), read_model(write_model(unrolled(4), tmp_path / "m.xml"))):
        assert not read.layers
        assert "4 matrix products share one weight, as if an exporter unrolled a recurrent layer" in repr(read.layers)
        with pytest.raises(KeyError, match=r"layers has no 0, and no layer at all: 4 matrix products share"):
            read.layers[0]
        assert read.layers.why_none.startswith("4 matrix products share one weight")
    assert repr(load(unrolled(1)).layers) == "<no layers>"
    assert load(unrolled(1)).layers.why_none == two_layers([]).why_none == ""


def test_loops_are_told() -> None:
    assert why_none([], ["Loop", "Scan", "Loop"]).startswith("the bodies of 2 Loop, 1 Scan contain the recurrence")
    assert why_none(["a", "b"], []) == ""
