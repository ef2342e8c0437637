"""Reader of HDF5 weights in a process of its own, because HDF5 may hang or crash on a damaged file."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any, BinaryIO

import numpy as np

from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx._internal.extras import needs
from pyrnnx.errors import FormatError, PyrnnxError, shortened

from .worker import REJECTED

SECONDS = 60.0  # time limit of the process for an empty file
BYTES_A_SECOND = 2**24  # further bytes for each further second of the limit
LONGEST_MESSAGE = 2**16  # bytes

# Run with -I and the caller's sys.path: neither the environment nor the working folder changes the imports.
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from pyrnnx.frontends.keras.worker import main; main()"
)


def read_weights(
    label: str, contents: bytes, parents: Sequence[tuple[str, str]], cells: Sequence[tuple[str, int]]
) -> list[AnyArray]:
    """Run `read_weights` of h5.py in a process, safe from damaged and malicious files.

    Raises
    ------
    FormatError
        The contents are damaged or not an HDF5 file, take too long to read, or crash HDF5.
    PyrnnxError
        h5py is not installed, or no process can be started.
    """
    if find_spec("h5py") is None:
        raise PyrnnxError(needs("reading .keras files", "h5py", "keras"))
    request = json.dumps({"label": label, "parents": parents, "cells": cells}).encode()
    try:
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as result:
            source.write(request + b"\n")
            source.write(contents)
            source.seek(0)
            status = _run(label, source, result, SECONDS + len(contents) / BYTES_A_SECOND)
            result.seek(0)
            if status == REJECTED:
                raise FormatError(result.read(LONGEST_MESSAGE).decode(errors="replace"))
            return [_array(label, result) for _, count in cells for _ in range(count)]
    except OSError as error:
        raise PyrnnxError(
            f"{label}: the weights cannot be read in another process ({shortened(str(error))})"
        ) from error


def _run(label: str, source: BinaryIO, result: BinaryIO, seconds: float) -> int:
    """Run the worker; return its exit status, 0 or REJECTED."""
    if not sys.executable or getattr(sys, "frozen", False):  # a frozen program would start itself again
        raise PyrnnxError(f"{label}: .keras files are read in another process, but sys.executable is not a Python")
    command = [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path, default=str)]
    try:
        status = subprocess.run(
            command, stdin=source, stdout=result, stderr=subprocess.DEVNULL, timeout=seconds, check=False
        ).returncode
    except subprocess.TimeoutExpired:
        raise FormatError(f"{label}: the weights are damaged (HDF5 did not finish in {seconds:.0f} s)") from None
    if status == 1:  # an unexpected exception
        raise PyrnnxError(f"{label}: the Python process that reads the weights failed; check that h5py works")
    if status not in (0, REJECTED):
        raise FormatError(f"{label}: the weights are damaged (HDF5 crashed on them, exit status {status})")
    return status


def _array(label: str, result: BinaryIO) -> AnyArray:
    try:
        array: AnyArray = np.load(result, allow_pickle=False)
        return array if array.dtype.kind != "V" else array.view(_bfloat16(label))
    except PyrnnxError:
        raise
    except (ValueError, EOFError, MemoryError) as error:
        raise FormatError(f"{label}: the weights cannot be read ({shortened(str(error))})") from error


def _bfloat16(label: str) -> Any:
    try:
        return named_dtype("bfloat16")
    except ImportError as error:
        raise PyrnnxError(needs(f"{label}: reading weights in bfloat16", "ml_dtypes", "onnx")) from error
