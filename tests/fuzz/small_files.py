"""Small valid files for the fuzzer to break: weights, arrays, sounds and command lines."""

from __future__ import annotations

import io
import tempfile
import wave
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = (6, 2, 4)  # T, N, I of the models in EXAMPLES


class Seed(NamedTuple):
    """A file, or a model as files, and arrays for its inputs in their order."""

    name: str
    data: bytes  # of a model: .onnx or .xml
    weights: bytes = b""  # .bin, or an ONNX model's external data in WEIGHTS
    arrays: tuple[Any, ...] = ()


def _by_path(name: str, write: Callable[[Path], Any]) -> Seed:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name.partition(" ")[0]
        write(path)
        return Seed(name, path.read_bytes())


def _state_dicts() -> Iterator[tuple[str, dict[str, Any]]]:
    import torch_weights

    for cell, layers, directions, bias in product(torch_weights.GATES, (1, 2), (1, 2), (True, False)):
        sizes: dict[str, Any] = {"layers": layers, "directions": directions, "bias": bias, "dtype": np.float32}
        own = torch_weights.state_dict(cell, 3, 5, **sizes)
        yield f"{cell} {layers} {directions} {bias}", own
        prefixed = {f"lstm.{name}": array for name, array in own.items()}
        others = {"embedding.weight": np.ones((2, 3), np.float32)}
        yield f"{cell} {layers} {directions} {bias} in a model", prefixed | others
    first = torch_weights.state_dict("GRU", 3, 5, dtype=np.float16)
    both = {f"{prefix}.{name}": array for prefix in ("a", "b") for name, array in first.items()}
    yield "two, of which none is named", both


def safetensors() -> Iterator[Seed]:
    from safetensors.numpy import save

    for name, state in _state_dicts():
        yield Seed(name, save(state))


def pickled() -> Iterator[Seed]:
    import torch

    def save(state: Any, path: Path, **options: Any) -> None:
        torch.save(state, path, **options)

    for name, state in _state_dicts():
        tensors = {key: torch.from_numpy(array) for key, array in state.items()}
        yield _by_path(f"x.pt {name}", partial(save, tensors))
        if name.endswith("model"):
            nested = {"state_dict": tensors, "epoch": 3}
            yield _by_path(f"x.pt {name} old", partial(save, nested, _use_new_zipfile_serialization=False))


def archives() -> Iterator[Seed]:
    """Return .keras files of every cell, of one and two directions, and of a model in a model."""
    import keras_files as files
    from keras_weights import Case, random_weights

    for kind in ("SimpleRNN", "LSTM", "GRU reset_after=False", "GRU reset_after=True"):
        for directions, bias in product((1, 2), (True, False)):
            weights = random_weights(kind, 3, 5, bias=bias, dtype=np.float32) * directions
            direction = "bidirectional" if directions == 2 else "forward"
            case = Case(kind, 5, weights, {"direction": direction})
            path = "bidirectional" if directions == 2 else case.class_name.lower()
            groups = files.groups(case, "first", f"layers/{path}")
            config = files.model_config(files.layer_config(case, "first"))
            contents = files.weights_file(groups)
            yield _by_path(f"x.keras {kind} {directions} {bias}", partial(_write, config, contents))
    inner = files.model_config(files.layer_config(files.LSTM, "first"), name="inner")
    groups = {"layers/sequential": ("inner", []), **files.groups(files.LSTM, "first", "layers/sequential/layers/lstm")}
    yield _by_path("x.keras inner", partial(_write, files.model_config(inner), files.weights_file(groups)))


def _write(config: Any, contents: bytes, path: Path) -> None:
    import keras_files

    keras_files.write(path, config, contents)


def arrays() -> Iterator[Seed]:
    """Return .npy files of several dtypes, orders and versions, and .npz files."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 3))
    kinds: dict[str, Any] = {dtype: values.astype(dtype) for dtype in ("f2", "f4", ">f4", "f8", "i1", "i8", "?", "c8")}
    kinds |= {"column": np.asfortranarray(values), "empty": values[:0], "scalar": values[0, 0], "text": np.array(["a"])}
    kinds["fields"] = np.zeros(3, [("a", "f4"), ("b", "i4", (2,))])
    for name, array in kinds.items():
        for version in ((1, 0), (2, 0), (3, 0)):
            contents = io.BytesIO()
            np.lib.format.write_array(contents, array, version)
            yield Seed(f"x.npy {name} {version[0]}", contents.getvalue())
    for save in (np.savez, np.savez_compressed):
        yield _by_path(f"x.npz {save.__name__}", lambda path, save=save: save(path, a=values, b=values[:2]))  # type: ignore[misc]


def sounds() -> Iterator[Seed]:
    for channels, width, frames in product((1, 2), (1, 2, 3, 4), (0, 5)):
        contents = io.BytesIO()
        with wave.open(contents, "wb") as file:
            file.setnchannels(channels)
            file.setsampwidth(width)
            file.setframerate(8000)
            file.writeframes(bytes(range(channels * width * frames)))
        yield Seed(f"x.wav {channels} {width} {frames}", contents.getvalue())


@cache
def files_of_commands() -> dict[str, bytes]:
    """Return the files that command lines name."""
    found = {path.name: path.read_bytes() for path in EXAMPLES.glob("small_*")}
    T, N, I = SIZES
    for name, array in {"X": np.ones((T, N, I), np.float32), "lens": np.array([6, 3], np.int32)}.items():
        contents = io.BytesIO()
        np.save(contents, array)
        found[f"{name}.npy"] = contents.getvalue()
    found["a.wav"] = next(seed.data for seed in sounds() if seed.name.endswith("1 2 5"))
    found["w.safetensors"] = next(safetensors()).data
    return found


LINES = (
    "inspect small_rnn.onnx", "inspect small_model.xml --json", "inspect w.safetensors",
    "inspect small_model.xml --html p.html",
    "run small_rnn.onnx --input X=X.npy --input sequence_lens=lens.npy --input initial_h=0",
    "run small_model.xml --seed 3 --json",
    "run small_model.xml --output Y=Y.npy --output Y_h=h.npy", "run small_rnn.onnx --output out.npz",
    "run small_rnn.onnx --layer small_rnn --dim T=5", "run small_rnn.xml --dim T=3 --input X=a.wav",
    "run small_rnn.onnx --layer 0 --seed 1", "compare small_rnn.onnx small_model.xml",
    "compare small_rnn.onnx small_rnn.onnx --atol 0 --rtol 1e-3 --json",
    "compare small_rnn.onnx small_model.xml --html c.html",
    "convert small_model.xml out.onnx --force", "convert small_rnn.onnx out.xml --no-verify", "config --json",
    "config --help",
    "convert w.safetensors out.onnx --operator RNN --nonlinearity relu --opset 17",
    "convert w.safetensors out.xml --batch-first",
    "convert small_rnn.onnx layer.xml --layer small_rnn --input X=X.npy",
    "compare small_rnn.xml small_rnn.xml --dim T=2 --seed 1",
    "--version", "score small_rnn.onnx X.npy out.zarr --help", "check --help", "compare a.wav X.npy",
)  # fmt: skip


def lines() -> Iterator[Seed]:
    """Return command lines; a NUL ends each word."""
    for line in LINES:
        yield Seed(line, "\0".join(line.split()).encode())
