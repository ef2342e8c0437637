"""Smoke test of an installed pyrnnx, with only its wheel and the named extras.

python tests/smoke.py                 on every engine that the machine has, beside NumPy, SciPy and lxml alone
python tests/smoke.py onnx plot       the same, and what those extras bring
python tests/smoke.py --extras        the extras that this wheel has for users, as pip takes them: "onnx,plot"
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import metadata, version
from pathlib import Path
from typing import Any

import numpy as np

import pyrnnx
from pyrnnx import config, reference
from pyrnnx._kernels import engines
from pyrnnx.frontends import onnx, openvino

DEVELOPERS = {"test", "torch", "bench", "docs", "dev"}  # extras of a checkout
RTOL, ATOL = 1e-5, 1e-6  # of float32 beside the float64 oracle: sums of some ten products below 1
T, N, I, H = 5, 3, 4, 7

Arrays = dict[str, Any]


def arrays(gates: int, seed: int, dtype: Any = np.float32) -> Arrays:
    """X, W, R and B of an ONNX operator, whose states are neither zero nor alike."""
    rng = np.random.default_rng(seed)
    shapes = {"X": (T, N, I), "W": (1, gates * H, I), "R": (1, gates * H, H), "B": (1, 2 * gates * H)}
    shapes |= {"initial_h": (1, N, H)} | ({"initial_c": (1, N, H)} if gates == 4 else {})
    return {name: rng.uniform(-1, 1, shape).astype(dtype) for name, shape in shapes.items()}


def assert_close(got: Any, wanted: Any) -> None:
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=RTOL, atol=ATOL)


@contextmanager
def raises(kind: type[Exception], text: str) -> Iterator[None]:
    try:
        yield
    except kind as error:
        if text not in str(error):
            raise
        return
    raise RuntimeError(f"no {kind.__name__} with {text!r}")


def lstm_layer(seed: int = 3) -> pyrnnx.Layer:
    given = arrays(4, seed)
    return pyrnnx.Layer(pyrnnx.RecurrentOp("LSTM", H), given["W"], given["R"], given["B"])


def check_metadata() -> None:
    assert version("pyrnnx") == pyrnnx.__version__


def check_operators() -> None:
    """Functions of both front-ends beside the oracle."""
    for name, gates in (("rnn", 1), ("gru", 3), ("lstm", 4)):
        for dtype in (np.float32, np.float64):
            given = arrays(gates, gates, dtype)
            lengths = np.array([5, 2, 4], np.int32)
            got = getattr(onnx, name)(**given, sequence_lens=lengths)
            assert all(one.dtype == dtype for one in got)
            assert_close(got, getattr(reference, name)(**given, sequence_lens=lengths))
    rng = np.random.default_rng(8)
    shapes = [(N, T, I), (N, 1, H), (1, 3 * H, I), (1, 3 * H, H), (1, 3 * H)]
    X, h, W, R, B = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes)
    values = X, h, np.array([5, 2, 4]), W, R, B
    assert_close(openvino.gru_sequence(*values, hidden_size=H), reference.run("GRUSequence-5", *values, hidden_size=H))


def check_files() -> None:
    """An IR written, read and run; a file that is none is a PyrnnxError."""
    layer, X = lstm_layer(), arrays(4, 5)["X"]
    with tempfile.TemporaryDirectory() as folder:
        model = pyrnnx.load(openvino.write_model(layer, f"{folder}/lstm.xml"))
        (read,) = model.layers.values()
        lengths, zeros = np.full(N, T), np.zeros((N, 1, H), np.float32)
        got = read(X.swapaxes(0, 1), zeros, zeros, lengths)
        np.testing.assert_array_equal(got[0][:, 0].swapaxes(0, 1), layer(X)[0][:, 0])
        assert pyrnnx.compare(layer, read).equal(atol=1e-6, rtol=1e-6)
        Path(folder, "broken.xml").write_text("<net")
        with raises(pyrnnx.PyrnnxError, "broken.xml"):
            pyrnnx.load(f"{folder}/broken.xml")


def check_onnx() -> None:
    """ONNX models written, read, run as a whole and layer by layer."""
    layer, X = lstm_layer(), arrays(4, 5)["X"]
    with tempfile.TemporaryDirectory() as folder:
        ir = openvino.read_model(openvino.write_model(layer, f"{folder}/lstm.xml"))
        path = Path(folder, "lstm.onnx")
        path.write_bytes(openvino.to_onnx(ir).SerializeToString())
        inputs = {"X": X.swapaxes(0, 1), "H": np.zeros((N, 1, H), np.float32), "C": np.zeros((N, 1, H), np.float32)}
        lengths = {"sequence_lengths": np.full(N, T, np.int32)}
        model = pyrnnx.load(path)
        outputs = list(model(inputs | lengths).values())
        np.testing.assert_allclose(outputs[0][:, 0].swapaxes(0, 1), layer(X)[0][:, 0], rtol=1e-6)
        assert len(model.layers) == 1
        assert pyrnnx.compare(str(path), ir).equal(atol=1e-6, rtol=1e-6)


def check_testing() -> None:
    from pyrnnx.testing import CASES, assert_same, random_cases

    assert_same(lstm_layer(3), lstm_layer(3))
    with raises(AssertionError, "unit"):
        assert_same(lstm_layer(3), lstm_layer(4))
    assert len(CASES) > 10
    assert len(list(random_cases(seed=1, count=3))) == 3


def check_cli() -> None:
    done = subprocess.run([sys.executable, "-m", "pyrnnx", "--version"], capture_output=True, text=True, check=True)
    assert pyrnnx.__version__ in done.stdout
    with tempfile.TemporaryDirectory() as folder:
        path = openvino.write_model(lstm_layer(), f"{folder}/lstm.xml")
        command = [sys.executable, "-m", "pyrnnx", "inspect", str(path)]
        assert "LSTM" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def stack_weights() -> Arrays:
    """The state_dict of PyTorch's LSTM(I, H)."""
    given = arrays(4, 3)
    halves = np.split(given["B"][0], 2)
    return {
        "weight_ih_l0": given["W"][0],
        "weight_hh_l0": given["R"][0],
        "bias_ih_l0": halves[0],
        "bias_hh_l0": halves[1],
    }


def check_safetensors() -> None:
    from_state_dict = import_module("pyrnnx.frontends.torch").from_state_dict
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "lstm.safetensors")
        import_module("safetensors.numpy").save_file(stack_weights(), path)
        X = arrays(4, 5)["X"]
        np.testing.assert_array_equal(from_state_dict(path)(X)[0], from_state_dict(stack_weights())(X)[0])


def check_keras() -> None:
    """Arrays as Keras has them. Keras itself needs a framework to compute with, which is in no extra."""
    import_module("h5py")
    given = arrays(4, 3)
    weights = [given["W"][0].T, given["R"][0].T, given["B"][0, : 4 * H]]
    stack = import_module("pyrnnx.frontends.keras").from_weights(weights)
    assert np.isfinite(stack(given["X"].swapaxes(0, 1))[0]).all()


def scored(sink: str, **options: Any) -> None:
    """Sequences scored in this process, or in another one."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        source.mkdir()
        for k in range(4):
            np.save(source / f"{k}.npy", np.random.default_rng(k).normal(size=(3 + k, I)).astype(np.float32))
        pyrnnx.score(lstm_layer(), source, Path(folder, "sink"), sink_format=sink, **options)
        assert Path(folder, "sink", "manifest.json").is_file()


def check_dask() -> None:
    scored("npz", workers=1)


def check_parquet() -> None:
    scored("parquet", workers=0)


def check_zarr() -> None:
    if sys.version_info >= (3, 11):  # the first that zarr 3 has
        scored("zarr", workers=0)


def check_object() -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder, "a.npy"), arrays(4, 3)["X"][:, 0])
        system.put(str(Path(folder, "a.npy")), "memory://smoke/a.npy")
        pyrnnx.score(lstm_layer(), "memory://smoke", Path(folder, "sink"), workers=0)


def check_audio() -> None:
    import soundfile

    with tempfile.TemporaryDirectory() as folder:
        soundfile.write(Path(folder, "a.flac"), np.zeros(80 * I), 8_000)
        options: Any = {"frame": I, "rate": 16_000, "workers": 0}
        report = pyrnnx.score(lstm_layer(), Path(folder, "a.flac"), Path(folder, "sink"), **options)
        assert report.items == 1


EVERYWHERE = (check_metadata, check_operators, check_files)
# Checks of each extra for users; tests/test_packaging.py compares these names with pyproject.toml.
EXTRAS: dict[str, tuple[Callable[[], None], ...]] = {
    "onnx": (check_onnx,),
    "testing": (check_testing,),
    "plot": (),  # for examples/
    "cli": (check_cli,),
    "safetensors": (check_safetensors,),
    "keras": (check_keras,),
    "dask": (check_dask,),
    "parquet": (check_parquet,),
    "zarr": (check_zarr,),
    "object": (check_object,),
    "audio": (check_audio,),
    "score": (check_dask, check_parquet, check_zarr, check_object, check_audio),
}


def provided() -> list[str]:
    """The extras of the installed wheel that are for users."""
    return sorted(set(metadata("pyrnnx").get_all("Provides-Extra") or ()) - DEVELOPERS)


def settings() -> list[str]:
    """The environments in which another engine or instruction set runs."""
    others = [f"PYRNNX_ISA={isa}" for isa in engines.supported() if isa != config.ISA]
    return others if config.ISA == "blas" else [*others, "PYRNNX_ENGINE=blas"]


def main(arguments: list[str]) -> None:
    if arguments == ["--extras"]:
        print(",".join(provided()))
        return
    checks = dict.fromkeys([*EVERYWHERE, *(check for extra in arguments for check in EXTRAS[extra])])
    for check in checks:
        check()
    names = ", ".join(check.__name__.removeprefix("check_") for check in checks)
    print(f"pyrnnx {pyrnnx.__version__}, Python {sys.version.split()[0]}, {config.ISA}: {names}", flush=True)
    if "PYRNNX_SMOKE" not in os.environ:
        for setting in settings():
            environment = os.environ | dict([setting.split("=")]) | {"PYRNNX_SMOKE": "1"}
            subprocess.run([sys.executable, __file__], env=environment, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
