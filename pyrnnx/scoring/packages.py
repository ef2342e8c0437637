"""Late imports of the optional packages of scoring."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyrnnx._internal.extras import needs
from pyrnnx.errors import UnsupportedError


def _imported(what: str, extra: str, *modules: str) -> Any:
    try:
        imported = [import_module(name) for name in modules]
    except ImportError as error:
        package = modules[0].partition(".")[0]
        raise UnsupportedError(f"{needs(f'score: {what}', package, extra)} ({error})") from None
    return imported[0]


def import_pyarrow() -> Any:
    return _imported("Parquet", "parquet", "pyarrow", "pyarrow.compute", "pyarrow.parquet", "pyarrow.types")


def import_zarr() -> Any:
    return _imported("zarr", "zarr", "zarr")


def import_distributed() -> Any:
    return _imported("scoring in several processes (workers=0 does without)", "dask", "distributed")


def import_fsspec() -> Any:
    return _imported("URLs", "object", "fsspec", "fsspec.core")
