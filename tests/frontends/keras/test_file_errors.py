"""Errors of from_file: broken and malicious configurations, weights and archives."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable
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
from keras_weights import random_weights
from rows import each_row

from pyrnnx import ArgumentError, FormatError, PyrnnxError, UnsupportedError
from pyrnnx.frontends.keras import from_file

h5py: Any = pytest.importorskip("h5py")
pytestmark = pytest.mark.usefixtures("in_this_process")


# Configurations that are rejected


BIDIRECTIONAL = serialized(
    "Bidirectional",
    {"name": "b", "layer": layer_config(LSTM, "f"), "backward_layer": layer_config(LSTM, "g", go_backwards=True)},
)


def both(**changes: Any) -> dict[str, Any]:
    return model_config(serialized("Bidirectional", BIDIRECTIONAL["config"] | changes))


def of_cell(cell: Any) -> dict[str, Any]:
    return model_config(serialized("RNN", {"name": "r", "cell": cell}))


def first(**changes: Any) -> dict[str, Any]:
    """Return the configuration of a model of a layer with other fields beside its own configuration."""
    return model_config(layer_config(LSTM, "x") | changes)


def both_of(**changes: Any) -> dict[str, Any]:
    return both(layer=layer_config(LSTM, "f") | changes)


A, F, U = ArgumentError, FormatError, UnsupportedError
CUSTOM = {"module": "builtins", "class_name": "function", "config": "mine", "registered_name": "mine"}
OTHER_UNITS = layer_config(LSTM, "g", go_backwards=True, units=6)
TWO_CELLS = serialized("StackedRNNCells", {"cells": [serialized("LSTMCell", {"units": 5})] * 2})
NONE = "has no recurrent layer"
KERAS = "expected classes of keras.layers"
FINITE = "expected a finite number"
BOOL = "expected true or false"
CONFIGS: list[tuple[Any, type[PyrnnxError], str]] = [
    *[(contents, F, "config.json is not JSON") for contents in (b"{", b"\xff\xfe\x00", b"[" * 100_000)],
    ({"class_name": "Own", "config": {}}, A, f"{NONE}; expected one of SimpleRNN"),
    (model_config(3), F, "has 3 among its layers; expected objects with a class_name"),
    (model_config(LAMBDA), A, NONE),
    *[(first(module=module), A, NONE) for module in ("mine", "keras.evil", "keras.layersevil")],
    (first(registered_name="evil>LSTM"), A, NONE),
    (good_config(units=0), F, "LSTM 'first': units is 0; expected a positive integer"),
    (good_config(units=10**30), A, "cell: kernel has shape (3, 20); expected (3, 4000000"),
    (good_config(use_bias="no"), F, f"use_bias is 'no'; {BOOL}"),
    (good_config(use_bias=False), F, "has 3 variables; expected 2"),
    (good_config(activation="gelu"), U, "activation is 'gelu'; expected one of tanh, sigmoid"),
    (good_config(activation=CUSTOM), U, "activation is the custom object 'mine'"),
    (
        good_config(activation=serialized("LeakyReLU", {"negative_slope": "x"})),
        A,
        "activation: negative_slope is 'x'; expected a number",
    ),
    (
        good_config(recurrent_activation=serialized("ELU", {"alpha": float("inf")})),
        A,
        f"LSTM 'first': recurrent_activation: alpha is inf; {FINITE}",
    ),
    (
        good_config(go_backwards=True, return_sequences=True),
        U,
        "go_backwards=True with return_sequences=True returns the last time step first",
    ),
    (both(merge_mode="sum"), U, "merge_mode is 'sum'; expected 'concat' or None"),
    (both(backward_layer=OTHER_UNITS), U, "units is 5 forward and 6 backward"),
    (both(backward_layer=layer_config(LSTM, "g")), U, "backward_layer has go_backwards=False"),
    (both_of(module="mine.layers"), U, f"has 'LSTM' of module 'mine.layers', registered_name None; {KERAS}"),
    (both_of(registered_name="evil>LSTM"), U, f"of module 'keras.layers', registered_name 'evil>LSTM'; {KERAS}"),
    (both(layer=serialized("RNN", {"cell": TWO_CELLS})), U, "layer has 2 cells; expected one"),
    (both(layer=serialized("Dense", {})), U, "the class is 'Dense'; expected one of SimpleRNN"),
    (good_config(go_backwards=1), F, f"LSTM 'first': go_backwards is 1; {BOOL}"),
    (of_cell(serialized("OwnCell", {})), U, "has a cell 'OwnCell'; expected one of"),
    (of_cell(None), F, "cell is None; expected a mapping"),
    (of_cell({"class_name": 3}), F, "class_name is 3; expected a string"),
]


@each_row(("config", "error", "message"), CONFIGS, ids=[row[-1] for row in CONFIGS])
def test_configurations_that_are_rejected(tmp_path: Path, config: Any, error: type[Exception], message: str) -> None:
    path = write(tmp_path / "a.keras", config, weights_file(good_groups()))
    with pytest.raises(error, match=re.escape(message)) as caught:
        from_file(path)
    assert type(caught.value) is error
    assert str(caught.value).startswith(str(tmp_path))
    assert "\n" not in str(caught.value)


def test_a_configuration_of_models_in_models_without_end(tmp_path: Path) -> None:
    config = model_config(LAMBDA)
    for _ in range(200):
        config = model_config(config)
    with pytest.raises(FormatError, match="it has models nested 101 deep"):
        from_file(write(tmp_path / "a.keras", config, b""))


# Weights that are rejected


Change = Callable[[Any], Any]


def changed(change: Change) -> bytes:
    contents = io.BytesIO(weights_file(good_groups()))
    with h5py.File(contents, "r+") as file:
        change(file["layers/lstm/cell/vars"])
    return contents.getvalue()


def replaced(name: str, value: Any) -> Change:
    return replacing(lambda group: group.__setitem__(name, value), name)


def replacing(make: Change, name: str = "0") -> Change:
    """Return a function that deletes a variable of a group, and makes another."""

    def change(group: Any) -> None:
        del group[name]
        make(group)

    return change


def virtual(group: Any) -> None:
    layout = h5py.VirtualLayout((3, 20), "f8")
    layout[:] = h5py.VirtualSource("/etc/passwd", "x", (3, 20))
    group.create_virtual_dataset("0", layout)


def external(group: Any) -> None:
    group.create_dataset("0", (3, 20), "f8", external=[("/etc/passwd", 0, 480)])


def huge_chunks(group: Any) -> None:
    """Write a dataset of huge chunks, of which the file has one, compressed."""
    shape, array = (2**10, 2**10), np.zeros((3, 20))
    group.create_dataset("0", data=array, maxshape=(None, None), chunks=shape, compression="gzip")


def rejected_weights() -> list[tuple[bytes, type[PyrnnxError], str]]:
    """Return the contents of a file of weights, the error, and its message."""
    ones = np.ones((3, 20))
    changes: list[tuple[Change, str]] = [
        (lambda group: group.clear(), "'layers/lstm/cell' has 0 variables; expected 3"),
        (lambda group: group.move("2", "x"), "has no '2'"),
        (replacing(lambda group: group.create_group("0")), "is not an array"),
        (replaced("0", ones.astype(int)), "has dtype int64; expected one of float16, float32, float64"),
        (replaced("0", h5py.SoftLink("/layers")), "is a soft or external link"),
        (replaced("0", h5py.ExternalLink("b.h5", "/x")), "is a soft or external link"),
        (replacing(external), "are not in the file"),
        (replacing(virtual), "are not in the file"),
        (
            replacing(lambda group: group.create_dataset("0", (10**6, 10**6), "f4", chunks=(1, 1000))),
            "has shape (1000000, 1000000); the file has",
        ),
        (replacing(huge_chunks), "has chunks of shape (1024, 1024); the file has"),
    ]
    fits: list[tuple[Change, str]] = [
        (replaced("1", np.ones((5, 21))), "cell: recurrent_kernel has shape (5, 21); expected (5, 20)"),
        (replaced("2", np.ones((2, 20))), "cell: bias has shape (2, 20); expected (20,)"),
        (replaced("0", ones.astype("f4")), "weights[1] has dtype float64; expected float32"),
    ]
    return [
        *[(contents, F, "the weights are damaged, or not an HDF5 file") for contents in (b"noise" * 100, b"")],
        (weights_file({}), F, "'/' has no 'layers'"),
        (weights_file(groups(LSTM, "other", "layers/lstm")), F, "'layers' has no weights of 'first'"),
        *[(changed(change), F, message) for change, message in changes],
        *[(changed(change), A, message) for change, message in fits],
    ]


@each_row("contents, error, message", rejected_weights)
def test_weights_that_are_rejected(tmp_path: Path, contents: bytes, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        from_file(write(tmp_path / "a.keras", good_config(), contents))
    assert "\n" not in str(caught.value)


def test_one_array_for_many_cells(tmp_path: Path) -> None:
    """A file of some kB could ask for any amount of memory: Keras makes no such links."""
    arrays = random_weights("LSTM", 50, 50)
    contents = io.BytesIO(weights_file({"layers/rnn/cell/cells/lstm_cell": ("cell", arrays)}))
    with h5py.File(contents, "r+") as h5_file:
        cells = h5_file["layers/rnn/cell/cells"]
        for k in range(1, 20):
            cells[f"lstm_cell_{k}"] = cells["lstm_cell"]
    stacked = serialized("StackedRNNCells", {"cells": [serialized("LSTMCell", {"units": 50})] * 20})
    config = model_config(serialized("RNN", {"name": "rnn", "cell": stacked}))
    with pytest.raises(FormatError, match=r"_cell_\d/vars/\d' have \d+ bytes, but the file only"):
        from_file(write(tmp_path / "a.keras", config, contents.getvalue()))


# Archives that are rejected


def test_archives(tmp_path: Path) -> None:
    path, weights = tmp_path / "a.keras", weights_file(good_groups())
    for contents in (b"noise" * 100, weights):
        path.write_bytes(contents)
        with pytest.raises(FormatError, match=r"a\.keras: not a \.keras file"):
            from_file(path)
    for config, given, missing in ((None, weights, "config.json"), (good_config(), None, "model.weights.h5")):
        with pytest.raises(FormatError, match=f"has no {missing}; expected a file of model.save"):
            from_file(write(path, config, given))
    for version, error, message in (
        ("2.15.0", UnsupportedError, "Keras '2.15.0' wrote the file; expected Keras 3"),
        (None, FormatError, "keras_version is None; expected a version"),
        ("x", FormatError, "keras_version is 'x'; expected a version"),
    ):
        with pytest.raises(error, match=message):
            from_file(write(path, good_config(), weights, metadata={"keras_version": version}))
    assert from_file(write(path, good_config(), weights, metadata={"keras_version": "10.1"})).name == "first"


def test_members_that_are_too_large(tmp_path: Path) -> None:
    path = tmp_path / "a.keras"
    for config, weights, name in (
        (b'["' + b" " * 2**23 + b'"]', b"", "config.json"),
        (good_config(), bytes(2**24), "model.weights.h5"),
    ):
        write(path, config, weights, compression=zipfile.ZIP_DEFLATED)
        assert path.stat().st_size < 2**18
        with pytest.raises(FormatError, match=rf"{re.escape(name)} has \d+ bytes; expected at most \d+"):
            from_file(path)
    config, weights = json.dumps(good_config()).encode(), weights_file(good_groups())  # stored
    assert from_file(write(path, config.ljust(2**24), weights)).hidden_sizes == (5,)
    with pytest.raises(FormatError, match=r"config\.json has 16777217 bytes; expected at most 16777216"):
        from_file(write(path, config.ljust(2**24 + 1), weights))


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "folder.keras").mkdir()
    for path, layer, message in (
        (tmp_path / "folder.keras", None, "it is a folder"),
        (tmp_path / "none.keras", None, "No such file"),
        (3, None, "path is 3; expected the path of a .keras file"),
        (tmp_path, 3, "layer is 3; expected a name, or None"),
    ):
        with pytest.raises(ArgumentError, match=message):
            from_file(path, layer)  # type: ignore[arg-type]
