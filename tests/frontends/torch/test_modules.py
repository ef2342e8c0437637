"""from_module and files of PyTorch compared with PyTorch; for `pytest -m torch`."""

from __future__ import annotations

import io
import os
import pickle
import re
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_weights import assert_close, random_inputs

from pyrnnx import ArgumentError, FormatError, PyrnnxError, Stack, UnsupportedError
from pyrnnx.frontends.torch import from_module, from_state_dict
from pyrnnx.testing.numbers import Array

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch")

TOLERANCE = 1e-12  # float64: sums in another order, over 3 layers of 7 steps
KINDS = ("RNN", "RNN relu", "GRU", "LSTM")


def random_module(seed: int) -> Any:
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    kind, _, nonlinearity = KINDS[seed % 4].partition(" ")
    module = getattr(torch.nn, kind)(
        int(rng.integers(1, 6)),
        int(rng.integers(5, 10)),
        num_layers=int(rng.integers(1, 4)),
        bidirectional=bool(rng.integers(2)),
        bias=bool(rng.integers(2)),
        batch_first=bool(rng.integers(2)),
        dtype=torch.float64,
        **({"nonlinearity": nonlinearity} if nonlinearity else {}),
    )
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(0, 0.5)
    return module.eval()


def run_torch(module: Any, X: Array, lens: Array, states: list[Array]) -> list[Array]:
    """Y, Y_h and Y_c of padded sequences, X [T, N, I]."""
    rnn_utils, first = torch.nn.utils.rnn, module.batch_first
    tensor = torch.tensor(X.swapaxes(0, 1) if first else X)
    packed = rnn_utils.pack_padded_sequence(tensor, torch.tensor(lens).long(), batch_first=first, enforce_sorted=False)
    given = [torch.tensor(state) for state in states]
    with torch.no_grad():
        Y, last = module(packed, tuple(given) if len(given) == 2 else given[0])
        Y, _ = rnn_utils.pad_packed_sequence(Y, batch_first=first, total_length=len(X))
    ends = last if isinstance(last, tuple) else (last,)
    return [Y.swapaxes(0, 1).numpy() if first else Y.numpy(), *(one.numpy() for one in ends)]


def run_stack(stack: Stack, X: Array, lens: Array, states: list[Array]) -> list[Array]:
    Y, *last = stack(X.swapaxes(0, 1) if stack.batch_first else X, lens, *states)
    return [Y.swapaxes(0, 1) if stack.batch_first else Y, *last]


@pytest.mark.parametrize("seed", range(40))
def test_random_modules(seed: int) -> None:
    """From the module, and from its state_dict."""
    module = random_module(seed)
    stack = from_module(module)
    options = {"nonlinearity": "relu"} if getattr(module, "nonlinearity", "") == "relu" else {}
    same: Any = from_state_dict(module.state_dict(), batch_first=module.batch_first, **options)
    for inputs in (seed, seed + 1, seed + 2, seed + 3, seed):  # other values and batch sizes, then the first again
        X, lens, states = random_inputs(stack, inputs)
        wanted = run_torch(module, X, lens, states)
        assert_close(run_stack(stack, X, lens, states), wanted, TOLERANCE)
        assert_close(run_stack(same, X, lens, states), wanted, TOLERANCE)


@pytest.mark.parametrize("kind", KINDS)
def test_cells(kind: str) -> None:
    """A step is a sequence of one."""
    torch.manual_seed(3)
    name, _, nonlinearity = kind.partition(" ")
    options = {"nonlinearity": nonlinearity} if nonlinearity else {}
    cell = getattr(torch.nn, name + "Cell")(3, 5, dtype=torch.float64, **options)
    stack = from_module(cell)
    X, _, states = random_inputs(stack, 0)
    given = [torch.tensor(state[0]) for state in states]
    for t, x in enumerate(torch.tensor(X)):
        given = [one.detach() for one in _as_list(cell(x, tuple(given) if len(given) == 2 else given[0]))]
        Y, *_ = stack(X[: t + 1], None, *states)
        np.testing.assert_allclose(Y[t], given[0].numpy(), rtol=0, atol=TOLERANCE)


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, tuple) else [value]


# Rejected modules


class Own(torch.nn.LSTM):  # type: ignore[misc]
    def forward(self, *arguments: Any) -> Any:
        Y, last = super().forward(*arguments)
        return 2 * Y, last


class Same(torch.nn.LSTM):  # type: ignore[misc]
    pass


def parametrized() -> Any:
    module = torch.nn.LSTM(3, 5)
    torch.nn.utils.parametrizations.weight_norm(module, "weight_hh_l0")
    return module


def model() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sequential(torch.nn.GRU(3, 5)))


nn = torch.nn
MODULES = "expected one of torch.nn.RNN"
REJECTED: list[tuple[Callable[[], Any], type[PyrnnxError], str]] = [
    (lambda: "LSTM", ArgumentError, f"from_module: 'str' was given; {MODULES}"),
    (lambda: nn.LSTM, ArgumentError, "from_module: LSTM is a class; expected an instance, such as LSTM(4, 8)"),
    (lambda: nn.Linear(2, 3), ArgumentError, f"'Linear' was given; {MODULES}"),
    (model, ArgumentError, "torch.nn.LSTMCell, such as its submodules '1.0'"),
    (lambda: Own(3, 5), UnsupportedError, "from_module: Own: it has a forward of its own"),
    (lambda: nn.LSTM(3, 5, proj_size=2), UnsupportedError, "LSTM: weight_hr belongs to an LSTM with proj"),
    (
        lambda: nn.LSTM(3, 5, num_layers=2, dropout=0.25),
        ArgumentError,
        "from_module: LSTM: it is in training mode with dropout=0.25; call module.eval() first",
    ),
    (parametrized, UnsupportedError, "ParametrizedLSTM: the weights are parametrized"),
    (lambda: nn.LSTM(3, 5, device="meta"), ArgumentError, "cannot be converted to an array"),
]


@pytest.mark.parametrize(("make", "error", "message"), REJECTED)
@pytest.mark.filterwarnings("ignore")
def test_rejected(make: Callable[[], Any], error: type[PyrnnxError], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)) as caught:
        from_module(make())
    assert type(caught.value) is error


def test_what_is_not_rejected() -> None:
    assert from_module(Same(3, 5)).hidden_sizes == (5,)
    assert from_module(torch.nn.LSTM(3, 5, num_layers=2, dropout=0.25).eval()).hidden_sizes == (5, 5)
    assert from_module(torch.nn.LSTM(3, 5), name="own", weight_dtype="bfloat16").layers[0].weight_dtype == "bfloat16"


# Files of torch.save


class Runs:
    """A malicious object: unpickling it would create a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


def test_a_saved_state_dict(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.LSTM(3, 5, num_layers=2, bidirectional=True, dtype=torch.bfloat16))
    same = from_module(module[0])
    for suffix in (".pt", ".pth", ".bin", ".ckpt"):
        path = tmp_path / f"weights{suffix}"
        torch.save({"epoch": 1, "model": module.state_dict()}, path)
        stack = from_state_dict(path)
        assert stack.name == "model.0"
        for layer, other in zip(stack.layers, same.layers, strict=True):
            for name, array in layer.weights.items():
                np.testing.assert_array_equal(array.astype(float), other.weights[name].astype(float))


@pytest.mark.parametrize("make", [torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))])
def test_a_malicious_file_is_not_run(tmp_path: Path, make: Any) -> None:
    path, made = tmp_path / "weights.pt", tmp_path / "made"
    make({"weight_ih_l0": torch.ones(4), "x": Runs(made)}, path)
    with pytest.raises(FormatError, match=r"weights\.pt: it .*; expected only tensors") as caught:
        from_state_dict(path)
    assert not made.exists()
    assert "\n" not in str(caught.value)
    assert "weights_only" not in str(caught.value)  # no advice to read it unsafely


@pytest.mark.filterwarnings("ignore")
def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    archive, script = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a", "b")
    torch.jit.save(torch.jit.script(torch.nn.LSTM(3, 5)), script)

    def saved(value: Any) -> bytes:
        contents = io.BytesIO()
        torch.save(value, contents)
        return contents.getvalue()

    module = torch.nn.LSTM(3, 5)
    for contents, message in (
        (b"noise" * 100, "it "),
        (saved(module.state_dict())[:1000], "it cannot be read"),
        (archive.getvalue(), "it "),
        (saved(module), r"it contains 'torch\.nn\.modules\.rnn\.LSTM', which is not a tensor"),
        (script.getvalue(), "it is a TorchScript archive"),
        (saved([torch.ones(3)]), "it contains 'list'; expected a mapping of tensors"),
    ):
        path.write_bytes(contents)
        with pytest.raises(FormatError, match=rf"weights\.pt: {message}") as caught:
            from_state_dict(path)
        assert "\n" not in str(caught.value)


def test_pickled_tensors_of_more_bytes_than_the_file(tmp_path: Path) -> None:
    """A file of 2 kB in which tensors lie on few numbers: what is in it, and how often, are two things."""
    path, one = tmp_path / "weights.pt", torch.zeros(1)
    big = one.expand(160_000, 40_000)
    row = [0.0] * 40
    bfloat16 = one.bfloat16().expand(160_000, 40_000)
    for state, message in (
        (
            {"weight_ih_l0": big, "weight_hh_l0": big},
            r"'weight_\w+' has shape \(160000, 40000\); the tensors up to it",
        ),
        ({"weight_ih_l0": bfloat16, "weight_hh_l0": bfloat16}, r"'weight_\w+' has shape"),
        ({"a.weight_ih_l0": [row] * 160, "a.weight_hh_l0": [row] * 160}, r"'a\.weight_\w+' is \[\["),
    ):
        torch.save(state, path)
        assert path.stat().st_size < 2**13
        with pytest.raises(FormatError, match=rf"weights\.pt.*: {message}") as caught:
            from_state_dict(path)
        assert "\n" not in str(caught.value)
    shared = {name: torch.ones(20, 5) for name in ("weight_ih_l0", "weight_hh_l0")}
    torch.save({f"{name[:-1]}{k}": array for name, array in shared.items() for k in range(12)}, path)
    assert len(from_state_dict(path).layers) == 12


def test_a_text_of_4_gib_in_a_damaged_pickle(tmp_path: Path) -> None:
    """A length is not allocated before the file is read; PyTorch's warnings about damage are not repeated."""
    path = tmp_path / "weights.pt"
    torch.save({"weight_ih_l0": torch.ones(20, 3)}, path, _use_new_zipfile_serialization=False)
    contents = path.read_bytes()
    path.write_bytes(contents[:2] + b"X" + (2**32 - 2).to_bytes(4, "little") + contents[2:])
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=r"weights\.pt"):
            from_state_dict(path)
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    for protocol in (b"\x80\x02", b"\x80\x05"):
        path.write_bytes(contents.replace(b"\x80\x02", protocol))
        with suppress(PyrnnxError):
            from_state_dict(path)
