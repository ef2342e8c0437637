"""What results are written as: a function for each format, which writes those of one part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx.dtypes import AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.scoring.outputs import Output
from pyrnnx.scoring.packages import import_pyarrow, import_zarr
from pyrnnx.scoring.sinks import npz as npz_sink
from pyrnnx.scoring.sinks import parquet as parquet_sink
from pyrnnx.scoring.sinks import zarr as zarr_sink
from pyrnnx.scoring.sinks.columns import NAMES, OFFSETS, Columns


@dataclass(frozen=True)
class Sink:
    """A format of results.

    Attributes
    ----------
    kind : str
    suffix : str
        Of the name of a part.
    write : callable
        (path, columns): a new file or folder.
    begin : callable
        (folder): what the folder of all parts needs.
    """

    kind: str
    suffix: str
    write: Callable[[Path, Columns], None]
    begin: Callable[[Path], None] = lambda folder: None
    needs: Callable[[], Any] = lambda: None


SINKS = {
    one.kind: one
    for one in (
        Sink("zarr", "", zarr_sink.write, zarr_sink.begin, import_zarr),
        Sink("parquet", ".parquet", parquet_sink.write, needs=import_pyarrow),
        Sink("npz", ".npz", npz_sink.write),
    )
}


def choose_sink(path: str, kind: Any) -> Sink:
    """The format of the results: as `kind` says, else as the path ends, else npz.

    Raises
    ------
    PyrnnxError
        Another format; one whose package is not installed.
    """
    if kind is None:
        kind = next((one for one in SINKS if path.lower().rstrip("/").endswith(f".{one}")), "npz")
    if not isinstance(kind, str) or kind not in SINKS:
        raise ArgumentError(f"score: sink_format is {shown(kind)}; expected one of {', '.join(SINKS)}")
    SINKS[kind].needs()
    return SINKS[kind]


def check_outputs(sink: Sink, label: str, outputs: Sequence[Output]) -> None:
    """Reject outputs that a format has no place for, before anything is computed.

    Raises
    ------
    UnsupportedError
        A dtype that is none of NumPy's numbers; names that are taken, or that no file can have.
    """
    names = [name for one in outputs for name in (one.name, f"{one.name}{OFFSETS}")]
    for one in outputs:
        if one.dtype.kind not in "biuf":
            raise UnsupportedError(
                f"score: {label}: output {shown(one.name)} has dtype {one.dtype}, which {sink.kind} does not store; "
                "leave it out of outputs"
            )
        if one.name in NAMES or names.count(one.name) > 1 or "/" in one.name or one.name.startswith((".", "_")):
            raise UnsupportedError(
                f"score: {label}: output {shown(one.name)} cannot be called so in {sink.kind}; leave it out of outputs"
            )


def columns_of(
    names: Sequence[str], indices: Sequence[int], results: Sequence[dict[str, AnyArray]], outputs: Sequence[Output]
) -> Columns:
    """The results of a part's items, as formats write them; takes them out of `results`, so that they are freed."""
    values, offsets = {}, {}
    for one in outputs:
        arrays = [result.pop(one.name) for result in results]
        if one.time is not None:
            offsets[one.name] = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
            empty = np.zeros((0, *one.shape), one.dtype)
            values[one.name] = np.concatenate(arrays) if arrays else empty
        else:
            values[one.name] = np.stack(arrays) if arrays else np.zeros((0, *one.shape), one.dtype)
    return Columns(np.array(names, np.str_), np.array(indices, np.int64), values, offsets)
