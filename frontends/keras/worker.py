"""Worker process that reads HDF5 weights: a request and the file on standard input, arrays on standard output."""

from __future__ import annotations

import json
import sys

import numpy as np

from pyrnnx.errors import FormatError

from .h5 import read_weights

REJECTED = 3  # exit status if the output is the message of a FormatError; Python's own is 1


def main() -> None:
    """Read a line of JSON and an HDF5 file; write the arrays one after another, as .npy."""
    source, result = sys.stdin.buffer, sys.stdout.buffer
    request = json.loads(source.readline())
    try:
        arrays = read_weights(request["label"], source.read(), request["parents"], request["cells"])
    except FormatError as error:
        result.write(str(error).encode(errors="backslashreplace"))
        result.flush()
        sys.exit(REJECTED)
    for array in arrays:
        np.save(result, array, allow_pickle=False)
