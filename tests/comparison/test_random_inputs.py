"""Random inputs of models and layers, in sizes that are declared, follow from layers, or are set by `dims`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layers import random_layer
from onnx_streams import H, I, stepwise
from rows import each_row

import pyrnnx
from pyrnnx import OPENVINO_CELL, ArgumentError, RecurrentOp
from pyrnnx.frontends.onnx import read_model


def test_sizes_of_symbols() -> None:
    model = read_model(stepwise())
    sizes: dict[str, Any] = {"N": np.int64(7)}
    found = pyrnnx.compare(model, model, dims=sizes)
    assert isinstance(found, pyrnnx.ModelComparison)
    assert found.input_shapes == {"x": (3, 7, I), "h": (1, 7, H), "c": (1, 7, H)}
    layer = model.layers[0]
    alone = pyrnnx.compare(layer, layer, dims={"seq_length": 4})
    assert len(alone.profiles["Y"].by_step) == 4


DIMS: list[tuple[Any, dict[str, Any], str]] = [
    ([3], {}, "compare: dims is list [3]; expected a mapping of sizes by name"),
    ({"N": 3}, {"inputs": {}}, "compare: dims is set and inputs is set"),
    ({"N": 2.5}, {}, "compare: dims: 'N' is 2.5"),
    ({"N": -1}, {}, "compare: dims: 'N' is -1"),
    ({"M": 3}, {}, "compare: dims has 'M'; expected symbolic dimensions of the inputs: N"),
    ({"N": 2**40}, {}, r"compare: input 'x' has shape (3, 1099511627776, 4); expected at most"),
]


@each_row(("dims", "more", "words"), DIMS, ids=[row[-1] for row in DIMS])
def test_rejected_sizes(dims: Any, more: dict[str, Any], words: str) -> None:
    model = read_model(stepwise())
    with pytest.raises(ArgumentError) as caught:
        pyrnnx.compare(model, model, dims=dims, **more)
    assert words in str(caught.value)


def test_rejected_sizes_of_layers() -> None:
    layer = read_model(stepwise()).layers[0]
    with pytest.raises(ArgumentError, match="compare: dims has 'N'; expected, for layers, seq_length, batch_size"):
        pyrnnx.compare(layer, layer, dims={"N": 3})
    cell = random_layer(RecurrentOp("GRU", H), I, convention=OPENVINO_CELL)
    with pytest.raises(ArgumentError, match=r"compare: dims has seq_length 2; expected 1: .* runs one step"):
        pyrnnx.compare(cell, cell, dims={"seq_length": 2})
