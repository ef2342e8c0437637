"""Layers from .keras files that the tests write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keras_files import (
    LAMBDA,
    LSTM,
    good_config,
    good_groups,
    groups,
    layer_config,
    model_config,
    serialized,
    weights_file,
    write,
)
from keras_weights import Case, random_case, random_inputs, random_weights
from rows import each_row
from torch_weights import assert_close

from pyrnnx import ArgumentError
from pyrnnx.frontends.keras import from_file, from_weights

h5py: Any = pytest.importorskip("h5py")
pytestmark = pytest.mark.usefixtures("in_this_process")

GRU = Case("GRU reset_after=True", 7, random_weights("GRU reset_after=True", 5, 7), {"direction": "forward"})


@each_row("seed", range(16))
def test_random_files(tmp_path: Path, seed: int) -> None:
    """The files have the results of from_weights, whose formulas test_weights.py checks."""
    case = random_case(seed)
    config = model_config(serialized("InputLayer", {"name": "x"}), layer_config(case, "own"), LAMBDA)
    group = "bidirectional" if case.directions == 2 else case.class_name.lower().replace("simplernn", "simple_rnn")
    names = bool(seed % 2)
    path = write(tmp_path / "a.keras", config, weights_file(groups(case, "own", f"layers/{group}"), names=names))
    X, lens, states = random_inputs(case, seed)
    stack = from_file(path)
    assert stack.name == "own"
    found, wanted = stack(X.swapaxes(0, 1), lens, *states), from_weights(case.weights, **case.options)
    for one, other in zip(found, wanted(X.swapaxes(0, 1), lens, *states), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("names", [True, False])
def test_models_in_models(tmp_path: Path, names: bool) -> None:
    """Layers of one class are told apart by their names, or their order where no names are stored."""
    other = Case("LSTM", 5, random_weights("LSTM", 3, 5, seed=9), {"direction": "forward"})
    inner = model_config(
        layer_config(other, "first"), layer_config(GRU, "second"), class_name="Functional", name="inner"
    )
    config = model_config(layer_config(LSTM, "first"), inner, layer_config(other, "third"), class_name="Functional")
    given = {
        **groups(LSTM, "first", "layers/lstm"),
        "layers/functional": ("inner", []),
        **groups(other, "first", "layers/functional/layers/lstm"),
        **groups(GRU, "second", "layers/functional/layers/gru"),
        **groups(other, "third", "layers/lstm_1"),
    }
    path = write(tmp_path / "a.keras", config, weights_file(given, names=names))
    for layer, case in (
        ("first", LSTM),
        ("inner/first", other),
        ("second", GRU),
        ("inner/second", GRU),
        ("third", other),
    ):
        (found,) = from_file(path, layer).layers
        np.testing.assert_array_equal(found.weights["R"][0], case.weights[1])
    listed = "'first', 'inner/first', 'inner/second', 'third'"
    for unknown, told in ((None, "was not given"), ("fourth", "is 'fourth'")):
        with pytest.raises(ArgumentError, match=rf"layer {told}; expected one of {listed}"):
            from_file(path, unknown)


def test_names_go_before_the_order(tmp_path: Path) -> None:
    other = Case("LSTM", 5, random_weights("LSTM", 3, 5, seed=9), {"direction": "forward"})
    config = model_config(layer_config(LSTM, "first"), layer_config(other, "second"))
    given = {**groups(other, "second", "layers/lstm"), **groups(LSTM, "first", "layers/lstm_1")}
    (found,) = from_file(write(tmp_path / "a.keras", config, weights_file(given)), "first").layers
    np.testing.assert_array_equal(found.weights["R"][0], LSTM.weights[1])


def test_cells(tmp_path: Path) -> None:
    """An RNN of several cells is a stack of layers."""
    cells = [serialized("LSTMCell", {"units": 5}), serialized("GRUCell", {"units": 7, "name": "x"})]
    stacked = serialized("StackedRNNCells", {"cells": cells})
    given = {
        "layers/rnn": ("cells", []),
        "layers/rnn/cell/cells/lstm_cell": ("a", LSTM.weights),
        "layers/rnn/cell/cells/gru_cell": ("b", GRU.weights),
    }
    path = write(
        tmp_path / "a.keras", model_config(serialized("RNN", {"name": "cells", "cell": stacked})), weights_file(given)
    )
    stack = from_file(path)
    assert stack.hidden_sizes == (5, 7)
    X = np.random.default_rng(1).normal(size=(4, 6, 3))
    Y, *_ = from_weights(GRU.weights)(from_weights(LSTM.weights)(X)[0])
    np.testing.assert_array_equal(stack(X)[0], Y)
    assert_close(stack(X)[:1], [Y], 0)


def test_modules_of_keras(tmp_path: Path) -> None:
    config = model_config(
        layer_config(LSTM, "first") | {"module": "keras.src.layers.rnn.lstm", "registered_name": "LSTM"}
    )
    assert from_file(write(tmp_path / "a.keras", config, weights_file(good_groups()))).name == "first"


def test_json_is_data(tmp_path: Path) -> None:
    """NaN, duplicates and names that look like paths are only that."""
    text = json.dumps(good_config()).replace('"use_bias": true', '"use_bias": true, "seed": NaN')
    path = write(tmp_path / "a.keras", text.encode(), weights_file(good_groups()))
    assert from_file(path).name == "first"
    config = model_config(layer_config(LSTM, "../../x\n\x1b[31m"))
    path = write(tmp_path / "b.keras", config, weights_file(groups(LSTM, "../../x\n\x1b[31m", "layers/lstm")))
    assert from_file(path).hidden_sizes == (5,)
    with pytest.raises(ArgumentError) as caught:
        from_file(path, "y")
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)
