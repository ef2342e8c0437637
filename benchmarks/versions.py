"""Print the machine and the versions of packages as a Markdown table."""

from __future__ import annotations

import contextlib
import importlib.metadata
import io
import os
import platform
import shutil
import subprocess
from pathlib import Path

from report import table

PACKAGES = ("pyrnnx", "numpy", "scipy", "onnx", "onnxruntime", "openvino", "torch")
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def cache_sizes() -> dict[str, int]:
    """Return the bytes of each data cache, from the nearest: {"L1": 32768, ...}; empty if unknown."""
    sizes = {}
    for index in sorted(CACHES.glob("index*")):
        level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            sizes[f"L{level}"] = int(size[:-1]) * UNITS[size[-1]] if size[-1] in UNITS else int(size)
    return sizes


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
    vectors = [flag for flag in ("avx2", "fma", "avx512f", "asimd", "sve") if flag in flags]
    return f"{name}, {' '.join(vectors)}"


def compiler() -> str:
    path = shutil.which(os.environ.get("CC", "cc"))
    if path is None:
        return "none"
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def versions() -> dict[str, str]:
    sizes = ", ".join(f"{level} {size // 1024} KB" for level, size in cache_sizes().items())
    rows = {
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "data caches": sizes or "unknown",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "C compiler here": compiler(),
        "Python": platform.python_version(),
        "pyrnnx runs": configuration(),
    }
    return rows | {package: version(package) for package in PACKAGES}


def configuration() -> str:
    """Return the engine and instruction set of `pyrnnx.show_config`."""
    import pyrnnx  # after OPENBLAS_NUM_THREADS is set by peers

    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        pyrnnx.show_config()
    fields = dict(line.split(":", 1) for line in text.getvalue().splitlines())
    return ", ".join(fields[key].strip() for key in ("engine", "instruction set"))


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    print(table(["what", "here"], versions().items()))
