"""Late imports of the optional packages of scoring."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyrnnx._internal.extras import needs
from pyrnnx.errors import UnsupportedError


def _imported(task: str, extra: str, *modules: str) -> Any:
    try:
        imported = [import_module(name) for name in modules]
    except (ImportError, OSError) as error:  # OSError: a library of the package is missing
        package = modules[0].partition(".")[0]
        raise UnsupportedError(f"{needs(task, package, extra)} ({error})") from None
    return imported[0]


def import_pyarrow() -> Any:
    return _imported("score: Parquet", "parquet", "pyarrow", "pyarrow.compute", "pyarrow.parquet", "pyarrow.types")


def import_zarr() -> Any:
    return _imported("score: zarr", "zarr", "zarr")


def import_soundfile() -> Any:
    return _imported("reading recordings", "audio", "soundfile")


def import_soxr() -> Any:
    return _imported("resampling recordings", "audio", "soxr")


def import_distributed() -> Any:
    return _imported("score: several processes (workers=0 does without)", "dask", "distributed")


def import_fsspec() -> Any:
    return _imported("score: URLs", "object", "fsspec", "fsspec.core")


def import_filelock() -> Any:
    return _imported("score: the lock of the sink", "score", "filelock")
