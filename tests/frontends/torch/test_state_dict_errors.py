"""Errors of from_state_dict."""

from __future__ import annotations

import json
import re
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rows import each_row
from torch_weights import state_dict

from pyrnnx import ArgumentError, FormatError, PyrnnxError, UnsupportedError
from pyrnnx.frontends.torch import files, from_module, from_state_dict
from pyrnnx.testing.numbers import Array

State = dict[str, Any]
I, H = 3, 5


def lstm(**options: Any) -> State:
    return dict(state_dict("LSTM", I, H, **options))


def without(state: State, *names: str) -> State:
    return {name: array for name, array in state.items() if name not in names}


def renamed(state: State, function: Callable[[str], str]) -> State:
    return {function(name): array for name, array in state.items()}


A, U = ArgumentError, UnsupportedError
TWO = renamed(lstm(), lambda name: f"a.{name}") | renamed(lstm(), lambda name: f"b.c.{name}")
NONE = "has no weights of a recurrent module"
PREFIXES = "expected one of 'a.', 'b.c.'"
PARAMETRIZED = {"parametrizations.weight_hh_l0.original0": np.ones(1)}


def hh(*shape: int) -> State:
    return lstm() | {"weight_hh_l0": np.ones(shape)}


def ih(*shape: int) -> State:
    return lstm() | {"weight_ih_l0": np.ones(shape)}


BOTH = lstm(directions=2)
WITHOUT_BACKWARD_BIASES = without(BOTH, "bias_ih_l0_reverse", "bias_hh_l0_reverse")
WITHOUT_HH = without(lstm(), "weight_hh_l0")
STATES: list[tuple[State, type[PyrnnxError], str]] = [
    # which module
    ({"fc.weight": np.ones(3)}, A, NONE),
    (TWO, A, f"prefix was not given; {PREFIXES}"),
    # names
    (lstm() | {"scale": np.ones(1)}, A, "unknown names 'scale'; expected weight_ih_l0"),
    (WITHOUT_HH, A, "it has no weight_hh_l0; expected all weights of layers and directions"),
    (WITHOUT_BACKWARD_BIASES, A, "it has no bias_ih_l0_reverse, bias_hh_l0_reverse; expected all weights of layers"),
    (renamed(lstm(), lambda name: name.replace("l0", "l1")), A, "has layer 1, but not layer 0; expected all from 0"),
    (lstm() | {"weight_ih_l999999": np.ones((1, 1))}, A, "has layer 999999, but not layer 1"),
    (lstm() | {f"weight_ih_l{'1' * 5000}": 1}, A, "unknown names 'weight_ih_l111"),
    (lstm() | {"weight_ih": np.ones((1, 1))}, A, "it has unknown names 'weight_ih'; expected weight_ih_l0"),
    (WITHOUT_HH | PARAMETRIZED, U, "parametrized ('parametrizations.weight_hh_l0.original0'); expected weights after"),
    (lstm() | {"weight_hr_l0": np.ones((2, H))}, U, "belongs to an LSTM with proj_size"),
    # shapes
    (
        hh(2 * H, H),
        A,
        "weight_hh_l0 has shape (10, 5); expected (G*hidden_size, hidden_size), with G = 1 for an RNN",
    ),
    (hh(0, 0), A, "weight_hh_l0 has shape (0, 0)"),
    (ih(3 * H, I), A, "weight_ih_l0 has shape (15, 3); expected (20, 3)"),
    (ih(20), A, "weight_ih_l0 has shape (20,); expected (20, input_size)"),
    (BOTH | {"weight_ih_l0_reverse": np.ones((20, 4))}, A, "weight_ih_l0_reverse has shape (20, 4); expected (20, 3)"),
    (
        lstm(directions=2, layers=2) | {"weight_ih_l1": np.ones((20, 5))},
        A,
        "weight_ih_l1 has shape (20, 5); expected (20, 10)",
    ),
    # values
    (
        {name: array.astype(int) for name, array in lstm().items()},
        A,
        "weight_ih_l0 has dtype int64; expected one of float32, float64, float16, bfloat16",
    ),
    (
        lstm() | {"bias_ih_l0": np.ones(20, "f4")},
        A,
        "bias_ih_l0 has dtype float32; expected float64, the dtype of weight",
    ),
    (lstm() | {"bias_ih_l0": None}, A, "bias_ih_l0 is None; expected an array"),
]
OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"prefix": 3}, "prefix is 3; expected a string"),
    ({"operator": "GRU"}, "shape (20, 5), which fits operator 'LSTM'; expected (3*hidden_size, hidden_size) for 'GRU'"),
    ({"nonlinearity": "relu"}, "nonlinearity is 'relu' with weights of LSTM; only an RNN has it"),
    ({"batch_first": 1}, "batch_first is 1; expected True or False"),
    ({"weight_dtype": "int8"}, "weight_dtype is 'int8' with dtype float64"),
]
CASES: list[tuple[State, dict[str, Any], type[PyrnnxError], str]] = [
    *[(state, {}, error, message) for state, error, message in STATES],
    *[(lstm(), options, A, message) for options, message in OPTIONS],
    *[(TWO, {"prefix": prefix}, A, f"prefix is '{prefix}'; {PREFIXES}") for prefix in ("b.", "a")],
    (state_dict("RNN", I, H), {"nonlinearity": "sigmoid"}, A, "nonlinearity is 'sigmoid'; expected 'tanh' or 'relu'"),
]


@each_row(("state", "options", "error", "message"), CASES, ids=[row[-1] for row in CASES])
def test_rejected(state: State, options: dict[str, Any], error: type[PyrnnxError], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        from_state_dict(state, **options)
    assert type(caught.value) is error
    assert "\n" not in str(caught.value)


# Files


def safetensors_file(folder: Path, state: dict[str, Array]) -> Path:
    numpy = pytest.importorskip("safetensors.numpy")
    path = folder / "weights.safetensors"
    numpy.save_file(state, path)
    return path


def test_safetensors(tmp_path: Path) -> None:
    state = renamed(lstm(layers=2, directions=2), lambda name: f"rnn.{name}")
    stack = from_state_dict(safetensors_file(tmp_path, state | {"codes": np.arange(3)}))
    same = from_state_dict(state)
    for layer, other in zip(stack.layers, same.layers, strict=True):
        for name, array in layer.weights.items():
            np.testing.assert_array_equal(array, other.weights[name], strict=True)
    with pytest.raises(ArgumentError, match=r"weights\.safetensors: prefix is 'x\.'; expected one of 'rnn\.'"):
        from_state_dict(str(tmp_path / "weights.safetensors"), prefix="x.")


def test_other_element_types_of_safetensors(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    halves = np.full((20, 5), 0x3F80, np.uint16).tobytes()  # 1 in bfloat16
    path = tmp_path / "a.safetensors"
    for dtype, contents in (("BF16", halves), ("F8_E4M3", halves[:100])):
        size = len(contents)
        header = {
            "weight_ih_l0": {"dtype": dtype, "shape": [20, 5], "data_offsets": [0, size]},
            "weight_hh_l0": {"dtype": dtype, "shape": [20, 5], "data_offsets": [size, 2 * size]},
        }
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + 2 * contents)
        if dtype == "BF16":
            stack = from_state_dict(path)
            assert stack.dtype.name == "bfloat16"
            assert (stack.layers[0].weights["W"] == 1).all()
        else:
            with pytest.raises(UnsupportedError, match=r"'weight_hh_l0' has type 'F8_E4M3'; expected F64, F32"):
                from_state_dict(path)


def test_broken_safetensors(tmp_path: Path) -> None:
    path = safetensors_file(tmp_path, lstm())
    whole = path.read_bytes()
    for contents in (b"\xff" * 100, *(whole[:size] for size in range(0, len(whole), 297))):
        path.write_bytes(contents)
        with pytest.raises(FormatError, match=r"weights\.safetensors: not a \.safetensors file"):
            from_state_dict(path)
    path.write_bytes(b"\x08" + b"\0" * 7 + b"{}      ")
    with pytest.raises(PyrnnxError, match=r"weights\.safetensors: it has no weights"):
        from_state_dict(path)


@pytest.mark.torch
def test_pickles_that_take_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long row of brackets is a list each; a compressed archive may unpack to any size."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(files, "OPERATIONS", 1000)
    path, whole = tmp_path / "a.pt", {f"weight_{kind}_l0": torch.ones(20, 5) for kind in ("ih", "hh")}
    brackets = b"\x80\x02" + 2000 * b"]" + b"."
    for is_archive in (True, False):
        torch.save(whole, path, _use_new_zipfile_serialization=is_archive)
        assert from_state_dict(path).layers[0].input_size == 5
    torch.save(whole, path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    messages = "its pickle has over 1000 operations", "it unpacks to .* bytes, and has .*; expected an archive without"
    path.write_bytes(brackets)
    with pytest.raises(FormatError, match=messages[0]):
        from_state_dict(path)
    for changes, compression, message in (
        ({"a/data.pkl": brackets}, zipfile.ZIP_STORED, messages[0]),
        ({"a/data/9": bytes(10**6)}, zipfile.ZIP_DEFLATED, messages[1]),
    ):
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, contents in (members | changes).items():
                archive.writestr(name, contents)
        with pytest.raises(FormatError, match=message):
            from_state_dict(path)


def test_paths(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    (tmp_path / "a.safetensors").mkdir()
    for source, error, message in (
        (tmp_path / "a.safetensors", ArgumentError, "it is a folder"),
        (tmp_path, FormatError, r"it is a folder; expected a file that ends in one of \.safetensors, \.pt"),
        (tmp_path / "none.safetensors", ArgumentError, "No such file"),
        (tmp_path / "a.h5", FormatError, r"ends in '\.h5'; expected one of \.safetensors, \.pt, \.pth, \.bin, \.ckpt"),
        (b"a.pt", ArgumentError, "source is b'a.pt'; expected a mapping of arrays, or the path"),
        (None, ArgumentError, "source is None; expected a mapping of arrays, or the path"),
        ([1], ArgumentError, r"source is \[1\]; expected a mapping of arrays, or the path"),
    ):
        with pytest.raises(error, match=message):
            from_state_dict(source)  # type: ignore[arg-type]


def test_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("safetensors", "torch"):
        monkeypatch.setitem(sys.modules, name, None)
    for path, message in (
        (tmp_path / "a.safetensors", "reading .safetensors files needs the package safetensors"),
        (tmp_path / "a.pt", r"reading \.pt files needs PyTorch; install torch, or save the weights as \.safetensors"),
    ):
        path.touch()
        with pytest.raises(PyrnnxError, match=message):
            from_state_dict(path)
    with pytest.raises(PyrnnxError, match="from_module needs PyTorch; install torch, or use from_state_dict"):
        from_module(object())
