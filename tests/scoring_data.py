"""Sources of sequences, layers and result folders for the tests of `pyrnnx.score`."""

from __future__ import annotations

import wave
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from layers import random_layer

from pyrnnx import Direction, Layer, RecurrentOp
from pyrnnx.testing.numbers import Array

SIZE = 5  # input_size
LENGTHS = (7, 3, 30, 7, 1, 12, 30, 2, 19, 5, 11, 7)
PART = 12_000  # bytes of memory with which these items are several parts
Results = dict[str, dict[str, Array]]


def sequences(lengths: Sequence[int] = LENGTHS, size: int = SIZE, seed: int = 0) -> list[Array]:
    """[T, size] each."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(length, size)).astype(np.float32) for length in lengths]


def write_npy(folder: Path, items: Sequence[Array]) -> Path:
    """A folder of 000.npy and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, item in named(items).items():
        np.save(folder / name, item)
    return folder


def named(items: Sequence[Array]) -> dict[str, Array]:
    """Return items by the names of their files."""
    return {f"{index:03}.npy": item for index, item in enumerate(items)}


def write_wav(path: Path, samples: Array, width: int = 2, channels: int = 1) -> None:
    """Samples as they are stored: integers of 8 * width bits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    wide = samples.astype("<i8").reshape(-1, 1).view(np.uint8)[:, :width]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(width)
        file.setframerate(16_000)
        file.writeframes(wide.tobytes())


def lstm(size: int = SIZE, hidden_size: int = 6, **keywords: Any) -> Layer:
    """A bidirectional layer."""
    return random_layer(
        RecurrentOp("LSTM", hidden_size=hidden_size, direction=Direction.BIDIRECTIONAL), size, **keywords
    )


def onnx_model(text: str, **arrays: Any) -> Any:
    """Return a model from the inputs, outputs and nodes of a graph, and its initializers."""
    import onnx

    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> m {text}')
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items() if name in used
    )
    return model


def expected(layer: Layer, items: Mapping[str, Array]) -> Results:
    """Return the results of the layer for each item alone, by name, time steps first, without the axis of rows."""
    found = {}
    for name, item in items.items():
        Y, Y_h, Y_c = layer.run(item[:, np.newaxis])
        found[name] = {"Y": Y[:, :, 0], "Y_h": Y_h[:, 0], "Y_c": Y_c[:, 0]}
    return found


def of_npz(sink: Path) -> Results:
    """Results by item and output."""
    found: Results = {}
    for path in sorted((sink / "parts").iterdir()):
        with np.load(path) as part:
            arrays = dict(part)
        found.update(_by_item(arrays, arrays["name"].tolist()))
    return found


def of_zarr(sink: Path) -> Results:
    """Return the results of a folder, as `of_npz` does."""
    import zarr

    root: Any = zarr.open(str(sink / "parts"), mode="r")
    found: Results = {}
    for key in sorted(root.group_keys()):
        arrays = {name: np.asarray(root[key][name][...]) for name in root[key].array_keys()}
        found.update(_by_item(arrays, list(map(str, arrays["name"]))))
    return found


def of_parquet(sink: Path) -> Results:
    """Return the results of a folder, as `of_npz` does, from lists."""
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(sink / "parts").to_pylist()
    return {
        row["name"]: {key: np.array(value, np.float32) for key, value in row.items() if key not in ("name", "index")}
        for row in rows
    }


READERS = {"npz": of_npz, "zarr": of_zarr, "parquet": of_parquet}


def _by_item(arrays: Mapping[str, Array], names: Sequence[str]) -> Results:
    found: Results = {name: {} for name in names}
    outputs = [name for name in arrays if name not in ("name", "index") and not name.endswith(".offsets")]
    for output in outputs:
        offsets = arrays.get(f"{output}.offsets")
        for index, name in enumerate(names):
            own = slice(*offsets[index : index + 2]) if offsets is not None else index
            found[name][output] = arrays[output][own]
    return found


def assert_equal(given: Results, wanted: Results) -> None:
    """Bit for bit."""
    assert list(given) == list(wanted)
    for name, outputs in wanted.items():
        assert set(given[name]) == set(outputs)
        for output, array in outputs.items():
            assert given[name][output].dtype == array.dtype
            np.testing.assert_array_equal(
                given[name][output].view(np.uint8), np.ascontiguousarray(array).view(np.uint8)
            )


def contents(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}
