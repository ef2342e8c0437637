"""from_module and files of PyTorch beside PyTorch itself; for `pytest -m torch`."""

from __future__ import annotations

import io
import os
import pickle
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_weights import assert_close, random_inputs

from pyrnnx import ArgumentError, FormatError, PyrnnxError, Stack, UnsupportedError, compare
from pyrnnx.frontends.onnx import gru, lstm, read_model, rnn, write_model
from pyrnnx.frontends.openvino import write_model as write_ir
from pyrnnx.frontends.torch import from_module, from_state_dict
from pyrnnx.testing.numbers import Array

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch")

TOLERANCE = 1e-12  # float64: sums in another order, over 3 layers of 7 steps
FLOAT32 = 1e-4  # float32: the same, and Relu lets values grow
KINDS = ("RNN", "RNN relu", "GRU", "LSTM")


def random_module(seed: int, dtype: str = "float64") -> Any:
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
        dtype=getattr(torch, dtype),
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


@pytest.mark.parametrize("seed", range(100))
def test_random_modules(seed: int) -> None:
    """As a Stack, from the module and from its state_dict, and through the operators of ONNX and a written model."""
    module = random_module(seed)
    stack = from_module(module)
    X, lens, states = random_inputs(stack, seed)
    wanted = run_torch(module, X, lens, states)
    assert_close(run_stack(stack, X, lens, states), wanted, TOLERANCE)
    options = {"nonlinearity": "relu"} if getattr(module, "nonlinearity", "") == "relu" else {}
    same: Any = from_state_dict(module.state_dict(), batch_first=module.batch_first, **options)
    assert_close(run_stack(same, X, lens, states), wanted, TOLERANCE)
    assert_close(through_functions(stack, X, lens, states), wanted, TOLERANCE)


def through_functions(stack: Stack, X: Array, lens: Array, states: list[Array]) -> list[Array]:
    """The operators that write_model makes of a stack, called one by one."""
    onnx = pytest.importorskip("onnx")
    model = write_model(stack)
    constants = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer}
    last: list[list[Array]] = [[] for _ in states]
    row = 0
    for node in (one for one in model.graph.node if one.op_type in ("RNN", "GRU", "LSTM")):
        operator: Any = {"RNN": rnn, "GRU": gru, "LSTM": lstm}[node.op_type]
        weights = dict(zip("WRB", (constants[name] for name in node.input[1:4] if name), strict=False))
        attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        for name, value in attributes.items():
            if isinstance(value, bytes):
                attributes[name] = value.decode()
            elif name == "activations":
                attributes[name] = [one.decode() for one in value]
        D = len(weights["W"])
        initial = dict(zip(("initial_h", "initial_c"), (one[row : row + D] for one in states), strict=False))
        Y, *ends = operator(X, **weights, **initial, sequence_lens=lens, **attributes)
        X, row = Y.transpose(0, 2, 1, 3).reshape(*X.shape[:2], -1), row + D
        for found, one in zip(last, ends, strict=True):
            found.append(one)
    return [X, *(np.concatenate(one) for one in last)]


@pytest.mark.parametrize("seed", range(100))
def test_written_models(seed: int, tmp_path: Path) -> None:
    """.onnx in ONNX Runtime, and the first of them as .xml in OpenVINO (the others: test_state_dict.py)."""
    onnxruntime = pytest.importorskip("onnxruntime")
    module = random_module(seed, "float32")
    stack = from_module(module)
    X, lens, states = random_inputs(stack, seed)
    wanted = run_torch(module, X, lens, states)
    names = ("sequence_lens", "initial_h", "initial_c")[: 1 + len(states)]
    written = write_model(stack, inputs=names)
    given = dict(zip(("X", *names), (X.swapaxes(0, 1) if stack.batch_first else X, lens, *states), strict=True))
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(written.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = [session.run(None, given)]
    if seed < 8:
        openvino = pytest.importorskip("openvino")
        core = openvino.Core()
        model = core.read_model(write_ir(written, tmp_path / "stack.xml"))
        model.reshape({name: list(array.shape) for name, array in given.items()})
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        results = compiled(given)
        found.append([results[name] for name in ("Y", "Y_h", "Y_c")[: 1 + len(states)]])
    for Y, *last in found:
        assert_close([Y.swapaxes(0, 1) if stack.batch_first else Y, *last], wanted, FLOAT32)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_dtypes_are_kept(kind: str, dtype: str) -> None:
    module = getattr(torch.nn, kind)(3, 5, num_layers=2, dtype=getattr(torch, dtype))
    stack = from_module(module)
    assert stack.dtype.name == dtype
    wanted = module.weight_hh_l1.detach().double().numpy()
    np.testing.assert_array_equal(stack.layers[1].weights["R"][0].astype(float), wanted)


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


def test_a_layer_and_an_onnx_layer_side_by_side() -> None:
    (layer,) = from_module(torch.nn.GRU(3, 5, bidirectional=True)).layers
    (other,) = read_model(write_model(layer)).layers.values()
    found = compare(layer, other)
    assert {one.aspect: (one.a, one.b) for one in found.conventions} == {
        "axes of Y": ("[T, N, D, H]", "[T, D, N, H]"),
        "gate order": ("r, z, h", "z, r, h"),
        "B": ("Wb_r, Wb_z, Wb_h, Rb_r, Rb_z, Rb_h: [D, 6*H]", "Wb_z, Wb_r, Wb_h, Rb_z, Rb_r, Rb_h: [D, 6*H]"),
        "names": ("lengths, h_0, h_n", "sequence_lens, initial_h, Y_h"),
        "dtype of lengths": ("int32 or int64", "int32"),
    }
    assert not found.operators
    assert found.largest_difference == 0


# What is rejected


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


REJECTED: dict[str, tuple[Any, type[PyrnnxError], str]] = {
    "a string": (lambda: "LSTM", ArgumentError, "from_module: 'str' was given; expected one of torch.nn.RNN"),
    "a class": (lambda: torch.nn.LSTM, ArgumentError, "from_module: 'type' was given"),
    "another module": (
        lambda: torch.nn.Linear(2, 3),
        ArgumentError,
        "'Linear' was given; expected one of torch.nn.RNN",
    ),
    "a model with one": (model, ArgumentError, "torch.nn.LSTMCell, as its submodules '1.0'"),
    "a forward of its own": (lambda: Own(3, 5), UnsupportedError, "from_module: Own: has a forward of its own"),
    "proj_size": (
        lambda: torch.nn.LSTM(3, 5, proj_size=2),
        UnsupportedError,
        "LSTM: weight_hr is of an LSTM with proj",
    ),
    "dropout in training": (
        lambda: torch.nn.LSTM(3, 5, num_layers=2, dropout=0.25),
        ArgumentError,
        "from_module: LSTM: is in training mode with dropout=0.25; expected module.eval() before",
    ),
    "parametrized": (parametrized, UnsupportedError, "ParametrizedLSTM: the weights are parametrized"),
    "without data": (lambda: torch.nn.LSTM(3, 5, device="meta"), ArgumentError, "cannot be taken as an array"),
    "complex": (lambda: torch.nn.LSTM(3, 5).to(torch.complex64), ArgumentError, "has dtype complex64; expected one of"),
}


@pytest.mark.parametrize("case", REJECTED)
@pytest.mark.filterwarnings("ignore")
def test_rejected(case: str) -> None:
    make, error, message = REJECTED[case]
    with pytest.raises(error, match=re.escape(message)) as caught:
        from_module(make())
    assert type(caught.value) is error


@pytest.mark.filterwarnings("ignore")
def test_a_quantized_module_is_rejected() -> None:
    quantized = torch.ao.nn.quantized.dynamic.LSTM(3, 5)
    with pytest.raises(ArgumentError, match=r"'LSTM' was given; expected one of torch\.nn\.RNN"):
        from_module(quantized)


def test_what_is_not_rejected() -> None:
    assert from_module(Same(3, 5)).hidden_sizes == (5,)
    assert from_module(torch.nn.LSTM(3, 5, num_layers=2, dropout=0.25).eval()).hidden_sizes == (5, 5)
    assert from_module(torch.nn.LSTM(3, 5), name="own", weight_dtype="bfloat16").layers[0].weight_dtype == "bfloat16"


# Files of torch.save


class Runs:
    """What a malicious file holds: unpickled, it would make a folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".bin", ".ckpt"])
def test_a_saved_state_dict(tmp_path: Path, suffix: str) -> None:
    module = torch.nn.Sequential(torch.nn.LSTM(3, 5, num_layers=2, bidirectional=True, dtype=torch.bfloat16))
    path = tmp_path / f"weights{suffix}"
    torch.save({"epoch": 1, "model": module.state_dict()}, path)
    stack, same = from_state_dict(path), from_module(module[0])
    assert stack.name == "model.0"
    for layer, other in zip(stack.layers, same.layers, strict=True):
        for name, array in layer.weights.items():
            np.testing.assert_array_equal(array.astype(float), other.weights[name].astype(float))


@pytest.mark.parametrize("make", [torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))])
def test_a_malicious_file_is_not_run(tmp_path: Path, make: Any) -> None:
    path, made = tmp_path / "weights.pt", tmp_path / "made"
    make({"weight_ih_l0": torch.ones(4), "x": Runs(made)}, path)
    with pytest.raises(FormatError, match=r"weights\.pt: it .*; expected tensors alone") as caught:
        from_state_dict(path)
    assert not made.exists()
    assert "\n" not in str(caught.value)
    assert "weights_only" not in str(caught.value)  # no advice to read it unsafely


@pytest.mark.filterwarnings("ignore")
def test_other_files(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    state = io.BytesIO()
    torch.save(torch.nn.LSTM(3, 5).state_dict(), state)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("a", "b")
    module = io.BytesIO()
    torch.save(torch.nn.LSTM(3, 5), module)
    script = io.BytesIO()
    torch.jit.save(torch.jit.script(torch.nn.LSTM(3, 5)), script)
    listed = io.BytesIO()
    torch.save([torch.ones(3)], listed)
    for contents, message in (
        (b"", "it cannot be read"),
        (b"noise" * 100, "it "),
        (state.getvalue()[:1000], "it cannot be read"),
        (archive.getvalue(), "it "),
        (module.getvalue(), r"it holds 'torch\.nn\.modules\.rnn\.LSTM', which is no tensor"),
        (script.getvalue(), "it is a TorchScript archive"),
        (listed.getvalue(), "holds 'list'; expected a mapping of tensors"),
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
            r"'weight_\w+' has shape \(160000, 40000\), and with what is before",
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
