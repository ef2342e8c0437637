"""Formats of results: for each format a function that writes one part."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.npy import write_npz
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.scoring.sources.parquet import import_pyarrow
from pyrnnx.scoring.sources.zarr import import_zarr
from pyrnnx.scoring.subjects.outputs import Output

Arrays = dict[str, AnyArray]
NAMES = ("name", "index")
OFFSETS = ".offsets"  # appended to the name of an output
ZARR_GROUP = "zarr.json"  # in the folder of all parts
_ZARR_CHUNK = 2**23  # approximate bytes of a chunk; each chunk is a file
_SUFFIX = re.compile(r"[^/\\]\.([A-Za-z][A-Za-z0-9]*)$")  # begins with a letter: a name such as "run.2" has none


def begin_zarr(folder: Path) -> None:
    import_zarr().open_group(str(folder), mode="a", zarr_format=3)


def write_zarr(path: Path, arrays: Arrays) -> None:
    group = import_zarr().open_group(str(path), mode="w-", zarr_format=3)
    for name, array in arrays.items():
        row = max(1, array.dtype.itemsize * int(np.prod(array.shape[1:])))
        chunks = (max(1, min(array.shape[0], _ZARR_CHUNK // row)), *(max(1, size) for size in array.shape[1:]))
        with warnings.catch_warnings():
            # Format 3 does not specify strings of fixed width yet, but zarr can read the ones that it writes.
            warnings.simplefilter("ignore")
            stored = group.create_array(name, shape=array.shape, dtype=array.dtype, chunks=chunks)
        stored[...] = array


def write_parquet(path: Path, arrays: Arrays) -> None:
    """Write a file of one row group; outputs are lists: nested ones for [T, D, H]."""
    pa = import_pyarrow()
    # Names of files need not be Unicode, which Parquet needs.
    names = [name.encode("utf-8", "replace").decode() for name in arrays["name"].tolist()]
    columns = {"name": pa.array(names, pa.string()), "index": pa.array(arrays["index"])}
    for name, values in arrays.items():
        if name in columns or name.removesuffix(OFFSETS) in arrays.keys() - {name}:
            continue
        columns[name] = _nested(pa, values)
        if (offsets := arrays.get(f"{name}{OFFSETS}")) is not None:
            columns[name] = pa.LargeListArray.from_arrays(offsets, columns[name])
    # Outputs of a network hardly repeat: dictionaries and statistics would only cost space.
    rows = max(1, len(names))
    pa.parquet.write_table(
        pa.table(columns), path, use_dictionary=False, write_statistics=["index"], row_group_size=rows
    )


def _nested(pa: Any, values: AnyArray) -> Any:
    """Return an array [n, a, b] as n lists of a lists of b numbers."""
    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    for axis in range(values.ndim - 1, 0, -1):
        flat = pa.FixedSizeListArray.from_arrays(flat, values.shape[axis])
    return flat


@dataclass(frozen=True)
class Sink:
    """A format of results."""

    kind: str  # name of the format, as in `sink_format`
    suffix: str  # suffix of the names of parts
    write: Callable[[Path, Arrays], None]  # writes the results of a part as a new file or folder
    begin: Callable[[Path], None] = lambda folder: None  # prepares the folder that will contain all parts
    needs: Callable[[], Any] = lambda: None  # imports the package that the format requires


SINKS = {
    sink.kind: sink
    for sink in (
        Sink("zarr", "", write_zarr, begin_zarr, import_zarr),
        Sink("parquet", ".parquet", write_parquet, needs=import_pyarrow),
        Sink("npz", ".npz", write_npz),
    )
}


def choose_sink(path: str, kind: Any) -> Sink:
    """Return the format named `kind`; if it is None, the format of the path's suffix, or npz if there is no suffix."""
    if kind is None:
        suffix = _SUFFIX.search(path)
        kind = suffix[1].lower() if suffix else "npz"
        if kind not in SINKS:
            allowed = ", ".join(f".{name}" for name in SINKS)
            raise ArgumentError(
                f"score: sink {shown(path)} ends in {shown(f'.{kind}')}; expected a name that ends in {allowed} or has "
                "no suffix, or sink_format"
            )
    if not isinstance(kind, str) or kind not in SINKS:
        raise ArgumentError(f"score: sink_format is {shown(kind)}; expected one of {', '.join(SINKS)}")
    SINKS[kind].needs()
    return SINKS[kind]


def check_outputs(sink: Sink, label: str, outputs: Sequence[Output]) -> None:
    """Raise for outputs that a format cannot store, before anything is computed."""
    names = [name for output in outputs for name in (output.name, f"{output.name}{OFFSETS}")]
    for output in outputs:
        name, problem = output.name, ""
        if output.dtype.kind not in "biuf":
            problem = f"dtype {output.dtype}, which {sink.kind} does not store"
        elif name in NAMES or names.count(name) > 1 or "/" in name or name.startswith((".", "_")):
            problem = f"a name that {sink.kind} does not allow"
        if problem:
            raise UnsupportedError(f"score: {label}: output {shown(name)} has {problem}; leave it out of outputs")


def arrays_of(
    names: Sequence[str], indices: Sequence[int], results: Sequence[dict[str, AnyArray]], outputs: Sequence[Output]
) -> Arrays:
    """Return the results of n items as arrays by name; remove them from `results` to free memory.

    "name" and "index" are [n]. An output without time steps is [n, ...]; with time steps, it is the concatenation of
    all items, and "OUTPUT.offsets" [n + 1] has their positions.
    """
    arrays: Arrays = {"name": np.array(names, np.str_), "index": np.array(indices, np.int64)}
    for output in outputs:
        pieces = [result.pop(output.name) for result in results]
        empty = np.zeros((0, *output.shape), output.dtype)
        if output.time is not None:
            arrays[f"{output.name}{OFFSETS}"] = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
            arrays[output.name] = np.concatenate(pieces) if pieces else empty
        else:
            arrays[output.name] = np.stack(pieces) if pieces else empty
    return arrays
