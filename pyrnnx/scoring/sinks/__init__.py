"""Formats of results: for each format a function that writes one part."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.scoring.packages import import_pyarrow, import_zarr
from pyrnnx.scoring.sinks import npz as npz_sink
from pyrnnx.scoring.sinks import parquet as parquet_sink
from pyrnnx.scoring.sinks import zarr as zarr_sink
from pyrnnx.scoring.sinks.parquet import OFFSETS
from pyrnnx.scoring.subjects.outputs import Output

Arrays = dict[str, AnyArray]
NAMES = ("name", "index")


@dataclass(frozen=True)
class Sink:
    """A format of results."""

    kind: str  # name of the format, as in `sink_format`
    suffix: str  # suffix of the names of parts
    write: Callable[[Path, Arrays], None]  # write(path, columns) writes the results of a part as a new file or folder
    begin: Callable[[Path], None] = lambda folder: None  # begin(folder) prepares the folder that will contain all parts
    # needs() imports the package that the format requires, or raises an `UnsupportedError`
    needs: Callable[[], Any] = lambda: None


SINKS = {
    sink.kind: sink
    for sink in (
        Sink("zarr", "", zarr_sink.write, zarr_sink.begin, import_zarr),
        Sink("parquet", ".parquet", parquet_sink.write, needs=import_pyarrow),
        Sink("npz", ".npz", npz_sink.write),
    )
}


# The suffix begins with a letter: a name such as "run.2" has none.
_SUFFIX = re.compile(r"[^/\\]\.([A-Za-z][A-Za-z0-9]*)$")


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
        name = output.name
        if output.dtype.kind not in "biuf":
            raise UnsupportedError(
                f"score: {label}: output {shown(name)} has dtype {output.dtype}, which {sink.kind} does not store; "
                "leave it out of outputs"
            )
        if name in NAMES or names.count(name) > 1 or "/" in name or name.startswith((".", "_")):
            raise UnsupportedError(
                f"score: {label}: output {shown(name)} has a name that {sink.kind} does not allow; "
                "leave it out of outputs"
            )


def arrays_of(
    names: Sequence[str], indices: Sequence[int], results: Sequence[dict[str, AnyArray]], outputs: Sequence[Output]
) -> dict[str, AnyArray]:
    """Return the results of n items as arrays by name; remove them from `results` to free memory.

    "name" and "index" are [n]. An output without time steps is [n, ...]; with time steps, it is the concatenation of
    all items, and "OUTPUT.offsets" [n + 1] has their positions.
    """
    arrays: dict[str, AnyArray] = {"name": np.array(names, np.str_), "index": np.array(indices, np.int64)}
    for output in outputs:
        pieces = [result.pop(output.name) for result in results]
        empty = np.zeros((0, *output.shape), output.dtype)
        if output.time is not None:
            arrays[f"{output.name}{OFFSETS}"] = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
            arrays[output.name] = np.concatenate(pieces) if pieces else empty
        else:
            arrays[output.name] = np.stack(pieces) if pieces else empty
    return arrays
