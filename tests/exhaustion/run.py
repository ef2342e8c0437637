"""Memory that runs out at every allocation of a call: `python tests/exhaustion/run.py [DOOR ...]`.

For k = 1, 2, ... the k-th allocation of pyrnnx's own modules fails, until a call makes fewer than k. Each such call
raises a MemoryError or a PyrnnxError that names memory, or returns the right result, and the next call is right.
The exit status is 1 if a call behaved otherwise.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[:1] = [str(TESTS), *map(str, sorted(TESTS.glob("frontends/*/builders")))]
NOTHING_FAILS = 20  # calls before, which fill caches
LIBRARY = "PYRNNX_FAILING"  # environment variable: path of the compiled allocator


def main(names: list[str]) -> int:
    """Return 1 if a call behaved otherwise."""
    if LIBRARY not in os.environ:
        return _again()
    from exhaustion.doors import DOORS

    library, mistakes = ctypes.CDLL(os.environ[LIBRARY]), 0
    for name in names or DOORS:
        outcomes, wrong = exhaust(name, library)
        told = ", ".join(f"{kind} {count}" for kind, count in sorted(outcomes.items())) or "none"
        print(f"{name}: {sum(outcomes.values())} failed allocations; {told}", *wrong, sep="\n  ", flush=True)
        mistakes += len(wrong)
    return int(mistakes > 0)


def _again() -> int:
    """Run this command with the allocator, which is compiled now, below it."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "failing.so"
        source = Path(__file__).with_name("failing.c")
        compiler = (sysconfig.get_config_var("CC") or "gcc").split()[0]
        subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-o", library, source, "-ldl"], check=True)
        settings = {"LD_PRELOAD": str(library), LIBRARY: str(library), "PYTHONMALLOC": "malloc"}
        return subprocess.run([sys.executable, *sys.argv], env={**os.environ, **settings}, check=False).returncode


def _choose_modules(library: ctypes.CDLL) -> None:
    """Choose the modules whose allocations fail: those of pyrnnx that are loaded by now."""
    library.failing_clear()
    for line in Path("/proc/self/maps").read_text().splitlines():
        matched = re.match(r"(\w+)-(\w+) r-xp \S+ \S+ \S+ +\S+/pyrnnx/_kernels/", line)
        if matched:
            library.failing_add(*(ctypes.c_size_t(int(address, 16)) for address in matched.groups()))


def exhaust(name: str, library: ctypes.CDLL) -> tuple[Counter[str], list[str]]:
    """Fail each allocation of a door; return the kinds of outcomes, and the wrong ones."""
    from exhaustion.doors import DOORS, flat

    door = DOORS[name]
    expected = [flat(door(number)) for number in range(3)]
    for _ in range(NOTHING_FAILS):
        flat(door(0))
    _choose_modules(library)
    outcomes, wrong, k = Counter[str](), list[str](), 1
    while outcome := _attempt(door, k, library, expected):
        kind, _, message = outcome.partition(":")
        outcomes[kind] += 1
        if kind == "wrong":
            wrong.append(f"allocation {k}:{message}")
        k += 1
    return outcomes, wrong[:10]


def _attempt(door: Callable[[int], Any], k: int, library: ctypes.CDLL, expected: list[Any]) -> str:
    """Return the outcome of a call whose k-th allocation fails, or "" if it has fewer."""
    from exhaustion.doors import flat

    from pyrnnx import PyrnnxError

    number, outcome, results = k % 3, "", None
    library.failing_arm(ctypes.c_long(k))
    try:
        results = flat(door(number))
    except MemoryError:
        outcome = "MemoryError"
    except PyrnnxError as error:
        outcome = type(error).__name__ if _names_memory(error) else f"wrong: {error}"
    except BaseException as error:
        outcome = f"wrong: {type(error).__name__}: {error}"
    failed = library.failing_failed()
    library.failing_arm(ctypes.c_long(0))
    if results is not None:
        outcome = "right" if _same(results, expected[number]) else "wrong: the result of this call"
    after = (number + 1) % 3
    if not outcome.startswith("wrong") and not _same(flat(door(after)), expected[after]):
        outcome = f"wrong: the call after one with {outcome}"
    return outcome if failed or outcome.startswith("wrong") else ""


def _names_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError) or "memory" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _same(results: Any, expected: Any) -> bool:
    import numpy as np

    return len(results) == len(expected) and all(map(np.array_equal, results, expected))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
