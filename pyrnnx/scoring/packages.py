"""Packages of the extras of scoring, imported when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pyrnnx.errors import UnsupportedError


def _imported(what: str, extra: str, *modules: str) -> Any:
    try:
        found = [import_module(name) for name in modules]
    except ImportError as error:
        raise UnsupportedError(
            f"score: {what} needs the package {modules[0].partition('.')[0]} ({error}); "
            f'install it, or "pyrnnx[{extra}]"'
        ) from None
    return found[0]


def import_pyarrow() -> Any:
    return _imported("Parquet", "parquet", "pyarrow", "pyarrow.compute", "pyarrow.parquet", "pyarrow.types")


def import_zarr() -> Any:
    return _imported("zarr", "zarr", "zarr")


def import_distributed() -> Any:
    return _imported("scoring in several processes (workers=0 does without)", "dask", "distributed")
