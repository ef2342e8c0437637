"""Settings of the process: engine and instruction set from the environment; threads, memory, invariance."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx._internal.scalars import byte_count, integer
from pyrnnx._kernels import calls, engines
from pyrnnx._version import __version__
from pyrnnx.errors import ArgumentError, shown

ENGINES = ("simd", "blas")
SWITCHES = ("0", "1")
MOST_THREADS = 2**31 - 1  # a C int


def _choice(variable: str, allowed: tuple[str, ...]) -> str | None:
    value = os.environ.get(variable, "").strip().lower()
    if value and value not in allowed:
        raise ArgumentError(f"environment variable {variable} is {value!r}; expected one of {', '.join(allowed)}")
    return value or None


def _choose_isa() -> str:
    """Return the kernels for new layers: "blas", or an instruction set of the SIMD engine."""
    supported = engines.supported()
    engine, isa = _choice("PYRNNX_ENGINE", ENGINES), _choice("PYRNNX_ISA", (*engines.SIMD, engines.MODEL))
    if engine == "simd" and not supported:
        raise ArgumentError("environment variable PYRNNX_ENGINE is 'simd'; this processor and build have only 'blas'")
    if engine == "blas" or not supported:
        return "blas"
    if isa == engines.MODEL:
        if not engines.has_model():
            raise ArgumentError(
                f"environment variable PYRNNX_ISA is {isa!r}, an instruction set for tests, which this build does not "
                "have; build pyrnnx with PYRNNX_BUILD_MODEL=1 in the environment"
            )
    elif isa is not None and isa not in supported:
        raise ArgumentError(
            f"environment variable PYRNNX_ISA is {isa!r}; this processor and build support {', '.join(supported)}"
        )
    return isa or supported[0]


def _quota() -> float:
    """Return how many processors a Linux control group allows this process; infinity without a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return math.inf


def processors() -> set[int]:
    """Return the logical processors that this process may use."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def _physical_cores() -> int:
    """Return the number of physical cores that affinity and control group allow this process, at least 1."""
    cores = set()
    for cpu in processors():
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            cores.add(siblings.read_text().strip())
        except OSError:
            cores.add(str(cpu))
    return max(int(min(len(cores), _quota())), 1)


ISA = _choose_isa()
calls.set_num_threads(_physical_cores())
_batch_invariant = _choice("PYRNNX_BATCH_INVARIANT", SWITCHES) == "1"
calls.set_batch_invariant(_batch_invariant)
_memory_limit = 4 * 2**30
_settings = object()


def get_num_threads() -> int:
    """Return the maximum number of threads of a call; initially the physical cores that this process may use."""
    return calls.get_num_threads()


def set_num_threads(n: int) -> None:
    """Set the maximum number of threads of a call, from 1 to 2147483647. Results are bit for bit the same.

    A call uses fewer threads if more would not be faster, and one while a call of another Python thread uses them.

    Raises
    ------
    ArgumentError
        `n` is no integer in that range.
    """
    global _settings  # noqa: PLW0603  # settings of the process
    expected = f"a positive integer, at most {MOST_THREADS}"
    calls.set_num_threads(integer("set_num_threads", "n", n, 1, MOST_THREADS, expected=expected))
    _settings = object()


def get_batch_invariant() -> bool:
    """Return whether calls are batch-invariant; initially PYRNNX_BATCH_INVARIANT, else False."""
    return _batch_invariant


def set_batch_invariant(value: bool | np.bool_) -> None:
    """Choose whether a row's results are bit for bit the same in every batch, also alone. Applies to later calls.

    This matters only on the instruction set "amx", from 16 rows on, in float32, float16 and bfloat16. There the
    processor's matrix unit multiplies if that is faster. It depends on the sizes of the layer; functions, which prepare
    weights for each call, need 1024 rows over all time steps. Its sums are as exact, but rounded in another order, and
    lose bits only if all terms are below about 1e-30. True disables the matrix unit. The BLAS engine ignores the
    setting: its order of summation always depends on the shape of a product.

    The matrix unit needs a copy of a layer's weights, 6 bytes per weight, made in the first call of 16 rows.

    Raises
    ------
    ArgumentError
        `value` is no bool.
    """
    global _batch_invariant, _settings  # noqa: PLW0603  # as the threads
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"set_batch_invariant: value is {shown(value)}; expected True or False")
    _batch_invariant = bool(value)
    calls.set_batch_invariant(_batch_invariant)
    _settings = object()


def get_memory_limit() -> int:
    """Return the limit in bytes of what a small file can ask for; initially 4 GiB."""
    return _memory_limit


def set_memory_limit(n: int | str) -> None:
    """Set the limit in bytes of what a small file can ask for.

    It applies to the external data of an ONNX model, which may refer to the same bytes many times, to each constant of
    an IR, to the zeros that a stream begins with, and to the arrays of an .npz file. Calls have no limit: ONNX Runtime
    allocates as the model tells it.

    Parameters
    ----------
    n : int or str
        Bytes, or a text with a unit, such as "512MiB" or "4GB".

    Raises
    ------
    ArgumentError
        `n` is no integer of 0 or above and no such text.
    """
    global _memory_limit, _settings  # noqa: PLW0603  # as the threads
    _memory_limit = byte_count("set_memory_limit", "n", n, 0)
    _settings = object()


def settings() -> object:
    """Return an object that every `set_...` call and a fork replace, so that caches can compare it."""
    return _settings


def _forked() -> None:
    global _settings  # noqa: PLW0603  # as the threads
    _settings = object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def get_config() -> dict[str, Any]:
    """Return the settings: version, engine, instruction set, threads, limits, and what this machine supports.

    Returns
    -------
    dict
        "pyrnnx" (the version), "engine" ("simd" or "blas") and "machine" are str. "instruction_set" is a str, or None
        with "blas". "supported" is a list of instruction sets and "blas". "threads" is an int, "batch_invariant" a
        bool, "memory_limit" an int in bytes. "logical_processors" is an int, or None if unknown.
    """
    import platform  # slow to import, and used only here

    return {
        "pyrnnx": __version__,
        "engine": "blas" if ISA == "blas" else "simd",
        "instruction_set": None if ISA == "blas" else ISA,
        "supported": [*engines.supported(), "blas"],
        "threads": get_num_threads(),
        "batch_invariant": _batch_invariant,
        "memory_limit": _memory_limit,
        "machine": platform.machine(),
        "logical_processors": os.cpu_count(),
    }


def config_rows() -> dict[str, str]:
    """Return the values of `get_config` in words."""
    config = get_config()
    return {
        "pyrnnx": config["pyrnnx"],
        "engine": config["engine"],
        "instruction set": config["instruction_set"] or "that of SciPy's BLAS",
        "supported": ", ".join(config["supported"]),
        "threads": str(config["threads"]),
        "batch invariant": "yes" if config["batch_invariant"] else "no",
        "memory limit": f"{config['memory_limit']} bytes for what a small file can ask for",
        "machine": f"{config['machine']}, {config['logical_processors']} logical processors",
    }


def show_config() -> None:
    """Print the settings that `get_config` returns."""
    for name, value in config_rows().items():
        print(f"{name + ':':17}{value}")
