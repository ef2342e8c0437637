"""Markdown tables, progress, the machine with versions of packages, and the memory of this process."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

PACKAGES = ("pyrnnx", "numpy", "onnx", "onnxruntime", "openvino", "torch")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
CLEAR_REFS, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
MB = 2**20


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the first column is text, the others are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def versions() -> str:
    """Return a table of the machine and of the versions of packages."""
    from pyrnnx.config import ISA  # after OPENBLAS_NUM_THREADS is set by peers

    rows = {
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "data caches": cache_sizes(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "Python": platform.python_version(),
        "pyrnnx runs": ISA,
    }
    return table(["what", "here"], (rows | {package: version(package) for package in PACKAGES}).items())


def processor() -> str:
    """Return the processor's name and vector extensions, and on x86 family and model: names may be shortened."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    lines = (line.partition(":") for line in info.read_text().splitlines())
    fields = {key.strip(): value.strip() for key, _, value in lines}
    name = fields.get("model name", platform.machine())
    if "cpu family" in fields:
        name += f", family {fields['cpu family']} model {fields.get('model', '?')}"
    flags = fields.get("flags", fields.get("Features", "")).split()
    return " ".join([f"{name},", *(flag for flag in ("avx2", "fma", "avx512f", "asimd", "sve") if flag in flags)])


def cache_sizes() -> str:
    """Return the size of each data cache, from the nearest, as the system writes it: "L1 32K, L2 1024K"."""
    caches = [
        [(index / name).read_text().strip() for name in ("level", "size", "type")]
        for index in sorted(CACHES.glob("index*"))
    ]
    return ", ".join(f"L{level} {size}" for level, size, kind in caches if kind != "Instruction") or "unknown"


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def status(field: str) -> int:
    """Return a field of /proc/self/status in bytes (Linux)."""
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def reset_peak() -> int:
    """Set the peak of resident memory (VmHWM) to the present size, and return that in bytes."""
    CLEAR_REFS.write_text("5")
    return status("VmRSS")
