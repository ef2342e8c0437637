"""Which engine runs, and with how many threads: chosen at import, changed at run time, shown on demand."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx._kernels import engines, packed_layer
from pyrnnx._version import __version__
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.scalars import integer

ENGINES = ("simd", "blas")
SWITCHES = ("0", "1")
RUNTIMES = ("auto", "onnxruntime", "reference")
MOST_THREADS = 2**31 - 1  # a C int


def _choice(variable: str, allowed: tuple[str, ...]) -> str | None:
    value = os.environ.get(variable, "").strip().lower()
    if value and value not in allowed:
        raise ArgumentError(f"environment variable {variable} is {value!r}; expected one of {', '.join(allowed)}")
    return value or None


def _choose_isa() -> str:
    """The kernels that new layers use: "blas", or an instruction set of the SIMD engine."""
    supported = engines.supported()
    engine, isa = _choice("PYRNNX_ENGINE", ENGINES), _choice("PYRNNX_ISA", engines.SIMD + engines.MODELS)
    if engine == "simd" and not supported:
        raise ArgumentError("environment variable PYRNNX_ENGINE is 'simd'; this build has only 'blas'")
    if engine == "blas" or not supported:
        return "blas"
    if isa is not None and isa not in supported + engines.MODELS:
        raise ArgumentError(
            f"environment variable PYRNNX_ISA is {isa!r}; this processor and build support {', '.join(supported)}"
        )
    return isa or supported[0]


def _quota() -> float:
    """How many processors' time a Linux control group allows this process; infinite without a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return math.inf if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError):
        return math.inf


def _physical_cores() -> int:
    """The physical cores that this process may run on, and whose time it is allowed."""
    cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = set()
    for cpu in cpus:
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            cores.add(siblings.read_text().strip())
        except OSError:
            cores.add(str(cpu))
    return max(int(min(len(cores), _quota())), 1)


ISA = _choose_isa()
_num_threads = _physical_cores()
_batch_invariant = _choice("PYRNNX_BATCH_INVARIANT", SWITCHES) == "1"
packed_layer.set_batch_invariant(_batch_invariant)
_memory_limit = 4 * 2**30
_settings = 0


def get_num_threads() -> int:
    """How many threads a call uses at most; at first, the physical cores that this process may run on."""
    return _num_threads


def set_num_threads(n: int) -> None:
    """Let a call use at most `n` threads, from 1 to 2147483647. Results do not depend on it, bit for bit.

    A call takes fewer where more would not make it faster, and one while another Python thread's call has the others.

    Raises
    ------
    ArgumentError
        Not an integer in that range.
    """
    global _num_threads, _settings  # noqa: PLW0603  # settings of the process
    _num_threads = integer(
        "set_num_threads", "n", n, 1, MOST_THREADS, expected=f"a positive integer, at most {MOST_THREADS}"
    )
    _settings += 1


def get_batch_invariant() -> bool:
    """Whether a row's results are the same bits in every batch; at first as PYRNNX_BATCH_INVARIANT says, else not."""
    return _batch_invariant


def set_batch_invariant(value: bool | np.bool_) -> None:
    """Let every row's results be the same bits in every batch, that of the row alone included, or not.

    They are without that, too, below 16 rows, in float64, and on every instruction set but "amx". There 16 rows or more
    of float32, float16 and bfloat16 are multiplied by the processor's matrices, where that pays: by the sizes of the
    layer and, in functions, which prepare weights for each call, from 1024 rows of all time steps on. Their sums are as
    exact, but rounded in another order, and lose bits only where all terms lie below about 1e-30; True does without
    them. The setting is the process's, for all calls that begin after it. (The BLAS
    engine sums in an order that depends on the shape of a product, whatever is set.)

    For the matrices a layer keeps its weights once more, in 6 bytes each, from its first call of 16 rows on.

    Raises
    ------
    ArgumentError
        Not a bool.
    """
    global _batch_invariant, _settings  # noqa: PLW0603  # as the threads
    if not isinstance(value, bool | np.bool_):
        raise ArgumentError(f"set_batch_invariant: value is {shown(value)}; expected True or False")
    _batch_invariant = bool(value)
    packed_layer.set_batch_invariant(_batch_invariant)
    _settings += 1


def get_memory_limit() -> int:
    """How many bytes the results within one call of a whole model may take; at first 4 GiB."""
    return _memory_limit


def set_memory_limit(n: int) -> None:
    """Let a call of a whole model take at most `n` bytes for the results of its operators, intermediate ones included.

    A small file can ask for any amount of memory: an operator whose results would exceed the limit is an error before
    it runs. The weights of a model and the inputs of a call do not count; nor does a call of a layer or a function,
    whose results are as large as the shapes of its arguments say. The external data of an ONNX model, which may be the
    same bytes many times, takes at most `n` bytes, too, and so does each constant of an IR.

    Raises
    ------
    ArgumentError
        Not an integer of 0 or above.
    """
    global _memory_limit, _settings  # noqa: PLW0603  # as the threads
    _memory_limit = integer("set_memory_limit", "n", n, 0)
    _settings += 1


def settings() -> int:
    """A number that changes whenever threads, batch invariance or the memory limit are set, and in a forked process."""
    return _settings


def _forked() -> None:
    global _settings  # noqa: PLW0603  # as the threads
    _settings += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def choose_runtime(label: str, runtime: str | None) -> str:
    """The runtime for a model, as its caller or else the environment says.

    Raises
    ------
    ArgumentError
        None of `RUNTIMES`.
    """
    if runtime is None:
        return _choice("PYRNNX_RUNTIME", RUNTIMES) or RUNTIMES[0]
    if not isinstance(runtime, str) or runtime not in RUNTIMES:
        raise ArgumentError(f"{label}: runtime is {shown(runtime)}; expected one of {', '.join(RUNTIMES)}")
    return runtime


def get_config() -> dict[str, Any]:
    """What runs: version, engine, instruction set, threads, and what else this machine supports.

    Returns
    -------
    dict
        "pyrnnx" and "engine" ("simd", "blas") are texts, as is "instruction_set", None with "blas"; "supported" is a
        list of instruction sets and "blas"; "threads" a number; "batch_invariant" a bool; "memory_limit" bytes a call
        of a model; "machine" a text, and "logical_processors" a number, None where it is not known.
    """
    import platform  # slow to import, and used here alone

    return {
        "pyrnnx": __version__,
        "engine": "blas" if ISA == "blas" else "simd",
        "instruction_set": None if ISA == "blas" else ISA,
        "supported": [*engines.supported(), "blas"],
        "threads": _num_threads,
        "batch_invariant": _batch_invariant,
        "memory_limit": _memory_limit,
        "machine": platform.machine(),
        "logical_processors": os.cpu_count(),
    }


def config_rows() -> dict[str, str]:
    """`get_config` in words."""
    found = get_config()
    return {
        "pyrnnx": found["pyrnnx"],
        "engine": found["engine"],
        "instruction set": found["instruction_set"] or "that of SciPy's BLAS",
        "supported": ", ".join(found["supported"]),
        "threads": str(found["threads"]),
        "batch invariant": "yes" if found["batch_invariant"] else "no",
        "memory limit": f"{found['memory_limit']} bytes a call of a model",
        "machine": f"{found['machine']}, {found['logical_processors']} logical processors",
    }


def show_config() -> None:
    """Print what `get_config` says."""
    for name, value in config_rows().items():
        print(f"{name + ':':17}{value}")
