"""Parts as .npz files: "name", "index", each output, and "OUTPUT.offsets" of those with time steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pyrnnx.scoring.sinks.columns import Columns


def write(path: Path, columns: Columns) -> None:
    """A new file, not compressed."""
    with open(path, "xb") as file:
        np.savez(file, **columns.arrays())  # type: ignore[arg-type]  # NumPy's stubs take the names for options
