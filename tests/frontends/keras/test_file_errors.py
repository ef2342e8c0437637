"""What from_file rejects: configurations, weights and archives that are broken, hostile or none of them."""

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
from keras_files import Groups, groups, layer_config, model_config, serialized, weights_file, write
from keras_weights import Case, random_weights

from pyrnnx import ArgumentError, FormatError, PyrnnxError, UnsupportedError
from pyrnnx.frontends.keras import file, from_file, h5

h5py: Any = pytest.importorskip("h5py")

LSTM = Case("LSTM", 5, random_weights("LSTM", 3, 5), {"direction": "forward"})
LAMBDA = serialized("Lambda", {"name": "lambda", "function": {"class_name": "__lambda__", "config": {"code": "x"}}})


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """HDF5 is called here, as starting a process for each file takes long; test_process.py is about those."""
    monkeypatch.setattr(file, "read_weights", h5.read_weights)


def good_groups() -> Groups:
    return groups(LSTM, "first", "layers/lstm")


def good_config(**changes: Any) -> dict[str, Any]:
    return model_config(layer_config(LSTM, "first", **changes))


# Configurations that are rejected


BIDIRECTIONAL = serialized(
    "Bidirectional",
    {"name": "b", "layer": layer_config(LSTM, "f"), "backward_layer": layer_config(LSTM, "g", go_backwards=True)},
)


def both(**changes: Any) -> dict[str, Any]:
    return model_config(serialized("Bidirectional", BIDIRECTIONAL["config"] | changes))


def of_cell(cell: Any) -> dict[str, Any]:
    return model_config(serialized("RNN", {"name": "r", "cell": cell}))


CUSTOM = {"module": "builtins", "class_name": "function", "config": "mine", "registered_name": "mine"}
OTHER_UNITS = layer_config(LSTM, "g", go_backwards=True, units=6)
CONFIGS: dict[str, tuple[Any, type[PyrnnxError], str]] = {
    "no JSON": (b"{", FormatError, "config.json is no JSON"),
    "no text": (b"\xff\xfe\x00", FormatError, "config.json is no JSON"),
    "deep": (b"[" * 100_000, FormatError, "config.json is no JSON"),
    "a list": ([], FormatError, "config.json is []; expected an object"),
    "no layers": (
        {"class_name": "Own", "config": {}},
        ArgumentError,
        "has no recurrent layer; expected one of SimpleRNN",
    ),
    "layers that are none": (
        model_config(3),
        FormatError,
        "has 3 among its layers; expected objects with a class_name",
    ),
    "no recurrent layer": (model_config(LAMBDA), ArgumentError, "has no recurrent layer"),
    "of others": (
        model_config(layer_config(LSTM, "x") | {"module": "mine"}),
        ArgumentError,
        "has no recurrent layer",
    ),
    "units": (good_config(units=0), FormatError, "LSTM 'first': units is 0; expected a positive integer"),
    "no units": (good_config(units=None), FormatError, "LSTM 'first': units is None; expected a positive integer"),
    "many units": (good_config(units=10**30), ArgumentError, "cell: kernel has shape (3, 20); expected (3, 4000000"),
    "other units": (good_config(units=6), ArgumentError, "cell: kernel has shape (3, 20); expected (3, 24)"),
    "use_bias": (good_config(use_bias="no"), FormatError, "use_bias is 'no'; expected true or false"),
    "no bias": (good_config(use_bias=False), FormatError, "has 3 variables; expected 2"),
    "activation": (
        good_config(activation="gelu"),
        UnsupportedError,
        "activation is 'gelu'; expected one of tanh, sigmoid",
    ),
    "a custom activation": (good_config(activation=CUSTOM), UnsupportedError, "activation is the custom object 'mine'"),
    "activation that is none": (good_config(activation=3), ArgumentError, "activation is 3; expected one of tanh"),
    "slope": (
        good_config(activation=serialized("LeakyReLU", {"negative_slope": "x"})),
        ArgumentError,
        "activation: negative_slope is 'x'; expected a number",
    ),
    "slope that is not a number": (
        good_config(activation=serialized("LeakyReLU", {"negative_slope": float("nan")})),
        ArgumentError,
        "LSTM 'first': activation: negative_slope is nan; expected a finite number",
    ),
    "slope without end": (
        good_config(recurrent_activation=serialized("ELU", {"alpha": float("inf")})),
        ArgumentError,
        "LSTM 'first': recurrent_activation: alpha is inf; expected a finite number",
    ),
    "go_backwards": (
        good_config(go_backwards=True, return_sequences=True),
        UnsupportedError,
        "go_backwards=True with return_sequences=True gives the last time step first",
    ),
    "merge_mode": (both(merge_mode="sum"), UnsupportedError, "merge_mode is 'sum'; expected 'concat', or None"),
    "backward_layer": (both(backward_layer=None), FormatError, "backward_layer is None; expected a mapping"),
    "backward units": (both(backward_layer=OTHER_UNITS), UnsupportedError, "units is 5 forward and 6 backward"),
    "both forward": (
        both(backward_layer=layer_config(LSTM, "g")),
        UnsupportedError,
        "backward_layer has go_backwards=False",
    ),
    "a layer of others": (
        both(layer=layer_config(LSTM, "f") | {"module": "mine.layers"}),
        UnsupportedError,
        "has 'LSTM' of module 'mine.layers', registered_name None; expected classes of keras.layers",
    ),
    "a layer of a module that Keras has not": (
        both(layer=layer_config(LSTM, "f") | {"module": "keras.evil"}),
        UnsupportedError,
        "has 'LSTM' of module 'keras.evil', registered_name None; expected classes of keras.layers",
    ),
    "a layer that others registered": (
        both(layer=layer_config(LSTM, "f") | {"registered_name": "evil>LSTM"}),
        UnsupportedError,
        "has 'LSTM' of module 'keras.layers', registered_name 'evil>LSTM'; expected classes of keras.layers",
    ),
    "a module that Keras has not": (
        model_config(layer_config(LSTM, "x") | {"module": "keras.evil"}),
        ArgumentError,
        "has no recurrent layer",
    ),
    "another module that Keras has not": (
        model_config(layer_config(LSTM, "x") | {"module": "keras.layersevil"}),
        ArgumentError,
        "has no recurrent layer",
    ),
    "registered by others": (
        model_config(layer_config(LSTM, "x") | {"registered_name": "evil>LSTM"}),
        ArgumentError,
        "has no recurrent layer",
    ),
    "return_sequences": (
        good_config(return_sequences=1),
        FormatError,
        "LSTM 'first': return_sequences is 1; expected true or false",
    ),
    "return_state": (good_config(return_state=None), FormatError, "return_state is None; expected true or false"),
    "stateful": (good_config(stateful="x"), FormatError, "LSTM 'first': stateful is 'x'; expected true or false"),
    "unroll": (good_config(unroll=[]), FormatError, "unroll is []; expected true or false"),
    "zero_output_for_mask": (good_config(zero_output_for_mask=0), FormatError, "zero_output_for_mask is 0; expected"),
    "both of no layer": (
        both(layer=serialized("Dense", {})),
        UnsupportedError,
        "is a 'Dense'; expected one of SimpleRNN",
    ),
    "a cell of others": (of_cell(serialized("OwnCell", {})), UnsupportedError, "has a cell 'OwnCell'; expected one of"),
    "no cell": (of_cell(None), FormatError, "cell is None; expected a mapping"),
    "no cells": (of_cell(serialized("StackedRNNCells", {"cells": []})), FormatError, "cells is []; expected a list"),
    "a class that is none": (of_cell({"class_name": 3}), FormatError, "class_name is 3; expected a string"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_configurations_that_are_rejected(tmp_path: Path, case: str) -> None:
    config, error, message = CONFIGS[case]
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
    with pytest.raises(FormatError, match="has models in models, 101 deep"):
        from_file(write(tmp_path / "a.keras", config, b""))


# Weights that are rejected


def changed(change: Callable[[Any], None]) -> bytes:
    contents = io.BytesIO(weights_file(good_groups()))
    with h5py.File(contents, "r+") as file:
        change(file["layers/lstm/cell/vars"])
    return contents.getvalue()


def replaced(name: str, value: Any) -> Callable[[Any], None]:
    def change(group: Any) -> None:
        del group[name]
        group[name] = value

    return change


def external(group: Any) -> None:
    del group["0"]
    group.create_dataset("0", (3, 20), "f8", external=[("/etc/passwd", 0, 480)])


def virtual(group: Any) -> None:
    del group["0"]
    layout = h5py.VirtualLayout((3, 20), "f8")
    layout[:] = h5py.VirtualSource("/etc/passwd", "x", (3, 20))
    group.create_virtual_dataset("0", layout)


def group_in_place(group: Any) -> None:
    del group["0"]
    group.create_group("0")


def huge(group: Any) -> None:
    del group["0"]
    group.create_dataset("0", (10**6, 10**6), "f4", chunks=(1, 1000))


def huge_chunks(group: Any) -> None:
    """Of which one is in the file, compressed."""
    array = group["0"][()]
    del group["0"]
    shape = (2**12, 2**12)
    group.create_dataset("0", data=array, maxshape=(None, None), chunks=shape, compression="gzip")


WEIGHTS: dict[str, tuple[bytes, str]] = {
    "noise": (b"noise" * 100, "the weights are no HDF5 file, or damaged"),
    "nothing": (b"", "the weights are no HDF5 file, or damaged"),
    "no groups": (weights_file({}), "'/' has no 'layers'"),
    "another name": (weights_file(groups(LSTM, "other", "layers/lstm")), "'layers' has no weights of 'first'"),
    "no variables": (changed(lambda group: group.clear()), "'layers/lstm/cell' has 0 variables; expected 3"),
    "other numbers": (changed(lambda group: group.move("2", "x")), "has no '2'"),
    "a group": (changed(group_in_place), "is no array"),
    "integers": (
        changed(replaced("0", np.ones((3, 20), int))),
        "has dtype int64; expected one of float16, float32, float64",
    ),
    "text": (changed(replaced("0", "text")), "has dtype object; expected one of"),
    "a soft link": (changed(replaced("0", h5py.SoftLink("/layers"))), "is a link to somewhere else"),
    "an external link": (changed(replaced("0", h5py.ExternalLink("b.h5", "/x"))), "is a link to somewhere else"),
    "numbers elsewhere": (changed(external), "are not in the file"),
    "a virtual array": (changed(virtual), "are not in the file"),
    "huge": (changed(huge), "has shape (1000000, 1000000); the file has"),
    "huge chunks": (changed(huge_chunks), "has chunks of shape (4096, 4096); the file has"),
}


@pytest.mark.parametrize("case", WEIGHTS)
def test_weights_that_are_rejected(tmp_path: Path, case: str) -> None:
    contents, message = WEIGHTS[case]
    with pytest.raises(FormatError, match=re.escape(message)) as caught:
        from_file(write(tmp_path / "a.keras", good_config(), contents))
    assert "\n" not in str(caught.value)


def test_shapes_and_dtypes_that_do_not_fit(tmp_path: Path) -> None:
    for name, value, message in (
        ("1", np.ones((5, 21)), "cell: recurrent_kernel has shape (5, 21); expected (5, 20)"),
        ("2", np.ones((2, 20)), "cell: bias has shape (2, 20); expected (20,)"),
        ("0", np.ones((3, 20), np.float32), "weights[1] has dtype float64; expected float32"),
        ("0", np.float64(1), "cell: kernel has shape (); expected (input_size, 20)"),
    ):
        path = write(tmp_path / "a.keras", good_config(), changed(replaced(name, value)))
        with pytest.raises(ArgumentError, match=re.escape(message)):
            from_file(path)


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
    with pytest.raises(
        FormatError, match=r"_cell_\d/vars/\d', arrays of \d+ bytes are read, some of them more than once"
    ):
        from_file(write(tmp_path / "a.keras", config, contents.getvalue()))


# Archives that are rejected


def test_archives(tmp_path: Path) -> None:
    path, weights = tmp_path / "a.keras", weights_file(good_groups())
    for contents in (b"", b"noise" * 100, b"PK\x03\x04", weights):
        path.write_bytes(contents)
        with pytest.raises(FormatError, match=r"a\.keras: no \.keras file"):
            from_file(path)
    for config, given, missing in ((None, weights, "config.json"), (good_config(), None, "model.weights.h5")):
        with pytest.raises(FormatError, match=f"has no {missing}; expected a file of model.save"):
            from_file(write(path, config, given))
    for version, error, message in (
        ("2.15.0", UnsupportedError, "was written by Keras '2.15.0'; expected Keras 3"),
        (None, FormatError, "keras_version is None; expected a version"),
        ("x", FormatError, "keras_version is 'x'; expected a version"),
    ):
        with pytest.raises(error, match=message):
            from_file(write(path, good_config(), weights, metadata={"keras_version": version}))
    assert from_file(write(path, good_config(), weights, metadata={"keras_version": "10.1"})).name == "first"


def test_a_zip_that_would_become_huge(tmp_path: Path) -> None:
    path = tmp_path / "a.keras"
    for config, weights, name in (
        (b'["' + b" " * 2**23 + b'"]', b"", "config.json"),
        (good_config(), bytes(2**24), "model.weights.h5"),
    ):
        write(path, config, weights, compression=zipfile.ZIP_DEFLATED)
        assert path.stat().st_size < 2**18
        with pytest.raises(FormatError, match=rf"{re.escape(name)} has \d+ bytes; expected at most \d+"):
            from_file(path)


def test_the_largest_configuration(tmp_path: Path) -> None:
    """Stored, so that the file is large, too."""
    path = tmp_path / "a.keras"
    config = json.dumps(good_config()).encode()
    for size in (2**24, 2**24 + 1):
        write(path, config.ljust(size), weights_file(good_groups()))
        if size == 2**24:
            assert from_file(path).hidden_sizes == (5,)
        else:
            with pytest.raises(FormatError, match=r"config\.json has 16777217 bytes; expected at most 16777216"):
                from_file(path)


def test_a_zip_that_lies_about_its_sizes(tmp_path: Path) -> None:
    """And one whose parts are damaged, byte by byte."""
    path = write(tmp_path / "a.keras", good_config(), weights_file(good_groups()))
    contents = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    accepted = 0
    for _ in range(200):
        altered = bytearray(contents)
        for place in rng.integers(0, len(altered), 3):
            altered[place] = rng.integers(256)
        path.write_bytes(altered)
        try:
            from_file(path)
            accepted += 1
        except PyrnnxError:
            pass
    assert accepted < 200


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "folder.keras").mkdir()
    for path, layer, message in (
        (tmp_path / "folder.keras", None, "it is a folder"),
        (tmp_path / "none.keras", None, "No such file"),
        (3, None, "path is 3; expected the path of a .keras file"),
        (b"a.keras", None, "path is b'a.keras'; expected the path"),
        (tmp_path, 3, "layer is 3; expected a name, or None"),
    ):
        with pytest.raises(ArgumentError, match=message):
            from_file(path, layer)  # type: ignore[arg-type]
