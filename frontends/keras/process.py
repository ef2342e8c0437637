"""Reader of HDF5 weights in a process of its own, because HDF5 may hang or crash on a damaged file."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from pyrnnx._internal.child_process import Child, DiedError, serve
from pyrnnx._internal.dtypes import AnyArray, named_dtype
from pyrnnx._internal.extras import needs
from pyrnnx.errors import FormatError, PyrnnxError, shortened

from . import h5

SECONDS = 60.0  # time limit of the process for an empty file
BYTES_A_SECOND = 2**24  # further bytes for each further second of the limit
LONGEST_MESSAGE = 2**16  # bytes

_PROGRAM = "from pyrnnx.frontends.keras.process import main; main()"
_ARRAYS, _REJECTED = b"A", b"R"  # first byte of an answer: arrays one after another, as .npy; text of a FormatError


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
    seconds = SECONDS + len(contents) / BYTES_A_SECOND
    try:
        with Child.start(_PROGRAM) as child:
            answer = io.BytesIO(child.ask(request, b"\n", contents, timeout=seconds))
    except TimeoutError:
        raise FormatError(f"{label}: the weights are damaged (HDF5 did not finish in {seconds:.0f} s)") from None
    except DiedError as error:
        if error.status == 1:  # an unexpected exception
            raise PyrnnxError(
                f"{label}: the Python process that reads the weights failed; check that h5py works"
            ) from None
        raise FormatError(
            f"{label}: the weights are damaged (HDF5 crashed on them, exit status {error.status})"
        ) from None
    except OSError as error:
        raise PyrnnxError(
            f"{label}: the weights cannot be read in another process ({shortened(str(error))})"
        ) from error
    if answer.read(1) == _REJECTED:
        raise FormatError(answer.read(LONGEST_MESSAGE).decode(errors="replace"))
    return [_array(label, answer) for _, count in cells for _ in range(count)]


def _array(label: str, answer: io.BytesIO) -> AnyArray:
    try:
        array: AnyArray = np.load(answer, allow_pickle=False)
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


def main() -> None:
    """Run the process that reads weights."""
    serve(_answer)


def _answer(message: bytes) -> bytes:
    """Answer a line of JSON and an HDF5 file with its arrays, or with what is wrong with it."""
    head, _, contents = message.partition(b"\n")
    request = json.loads(head)
    try:
        arrays = h5.read_weights(request["label"], contents, request["parents"], request["cells"])
    except FormatError as error:
        return _REJECTED + str(error).encode(errors="backslashreplace")
    answer = io.BytesIO()
    answer.write(_ARRAYS)
    for array in arrays:
        np.save(answer, array, allow_pickle=False)
    return answer.getvalue()
