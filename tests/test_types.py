"""Types for type checkers: `mypy tests` must pass, and reports unused `type: ignore` comments."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import pyrnnx
from pyrnnx import ArgumentError, Direction, Layer, Model, RecurrentOp
from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.frontends import onnx, openvino
from pyrnnx.frontends.onnx import NodeLayer, UnboundNode
from pyrnnx.frontends.openvino import IRLayer
from pyrnnx.models.layers import UnboundLayer
from pyrnnx.operator.op import CellName

if TYPE_CHECKING:
    from typing import assert_type
else:

    def assert_type(value: Any, expected: Any) -> Any:
        return value


EXAMPLE = Path(__file__).parents[1] / "examples" / "small_rnn.onnx"


def test_operators_take_the_names_of_their_table() -> None:
    for direction in Direction:
        assert RecurrentOp("GRU", 4, direction) == RecurrentOp("GRU", 4, direction.value)
    RecurrentOp("LSTM", 4, "reverse", activations=["Sigmoid", "Tanh", "Tanh"])
    with pytest.raises(ArgumentError, match="LTSM"):
        RecurrentOp("LTSM", 4)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="both"):
        RecurrentOp("LSTM", 4, direction="both")  # type: ignore[arg-type]
    assert_type(RecurrentOp("LSTM", 4).cell, CellName)


def test_layers_of_models_have_types(tmp_path: Path) -> None:
    """A call type-checks whether weights are bound or not; what only bound layers have needs an isinstance."""
    path = openvino.write_model(EXAMPLE, tmp_path / "m.xml")
    X, initial_h = np.ones((6, 2, 4), np.float32), np.zeros((2, 2, 8), np.float32)
    model = assert_type(pyrnnx.load(EXAMPLE), Model)
    either = assert_type(model.layers["small_rnn"], Layer | UnboundLayer)
    Y, Y_h = assert_type(either(X, [6, 4], initial_h), tuple[AnyArray, ...])
    assert (Y.shape, Y_h.shape) == ((6, 2, 2, 8), (2, 2, 8))
    with pytest.raises(AttributeError):
        model.layer()  # type: ignore[attr-defined]
    node = assert_type(onnx.read_model(EXAMPLE).layers["small_rnn"], NodeLayer | UnboundNode)
    assert_type(node(X, [6, 4], initial_h), tuple[AnyArray, ...])
    assert isinstance(node, NodeLayer)
    assert node.op == either.op
    ir = assert_type(openvino.read_model(path).layers[0], Layer | IRLayer)
    with pytest.raises(AttributeError):
        ir.bind(X, X)  # type: ignore[union-attr]
    layers: pyrnnx.Layers[Layer | UnboundLayer] = openvino.read_model(path).layers
    assert list(layers) == ["small_rnn"]


def test_a_single_layer_is_typed_by_its_own_reader() -> None:
    path = EXAMPLE.with_suffix(".xml")
    single = assert_type(openvino.read_layer(path), IRLayer)
    loaded: Any = pyrnnx.load(path)
    assert loaded == single
