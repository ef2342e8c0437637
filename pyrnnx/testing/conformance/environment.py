"""Environment of a run: versions and processor."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np

from pyrnnx._version import __version__

# Instructions that change which sums are rounded where.
_INSTRUCTIONS = ("fma", "avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_bf16", "asimd", "sve")


def environment() -> dict[str, str]:
    """Return versions of pyrnnx, Python and NumPy, the system, and the processor as far as it is known.

    Returns
    -------
    dict of str to str
        Keys "pyrnnx", "Python", "NumPy", "system" and "processor".
    """
    return {
        "pyrnnx": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "system": platform.system(),
        "processor": " ".join([platform.machine(), *_instructions()]),
    }


def _instructions() -> list[str]:
    """Return the processor's instruction sets, if Linux lists them."""
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return []
    lines = (line.partition(":") for line in text.splitlines())
    flags = next((value.split() for key, _, value in lines if key.strip() in ("flags", "Features")), [])
    return [name for name in _INSTRUCTIONS if name in flags]
