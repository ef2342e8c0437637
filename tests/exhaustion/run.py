"""Memory that runs out at every allocation of a call: `python tests/exhaustion/run.py [--python] [DOOR ...]`.

For k = 1, 2, ... the k-th allocation of pyrnnx's own modules fails, until a call makes fewer than k. Each such call
raises a MemoryError or a PyrnnxError that names memory, or returns the right result; the next call is right; and
pyrnnx's modules leave nothing allocated. `--python` fails those of Python's interpreter, too: objects, lists, strings.
The exit status is 1 if a call behaved otherwise.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
if __name__ == "__main__":
    sys.path[:1] = [str(TESTS), *map(str, sorted(TESTS.glob("frontends/*/builders")))]
NOTHING_FAILS = 20  # calls before, which fill caches
ROUNDS = 2  # an error that is raised for the first time fills caches, too; what the second round leaves is lost
PYTHONS = "can't allocate lock"  # message of a RuntimeError that threading.Lock() raises without memory
LIBRARY = "PYRNNX_FAILING"  # environment variable: path of the compiled allocator


def main(arguments: list[str] | None = None) -> int:
    """Return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("doors", nargs="*", help="default: all")
    parser.add_argument("--python", action="store_true", help="fail allocations of Python's interpreter, too")
    parser.add_argument("--most", type=int, default=100_000, help="stop a door after so many allocations")
    options = parser.parse_args(arguments)
    if LIBRARY not in os.environ:
        return _again()
    from exhaustion.doors import DOORS

    allocator, mistakes = _Allocator(os.environ[LIBRARY], with_python=options.python), 0
    for name in options.doors or DOORS:
        outcomes, wrong = exhaust(name, allocator, options.most)
        print(f"{name}: {sum(outcomes.values())} failed allocations; {_told(outcomes)}", *wrong, sep="\n  ", flush=True)
        mistakes += len(wrong)
    return int(mistakes > 0)


def _again() -> int:
    """Run this command below the allocator, which is compiled now."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "failing.so"
        source = Path(__file__).with_name("failing.c")
        compiler = (sysconfig.get_config_var("CC") or "gcc").split()[0]
        subprocess.run([compiler, "-O1", "-fPIC", "-shared", "-o", library, source, "-ldl"], check=True)
        settings = {"LD_PRELOAD": str(library), LIBRARY: str(library), "PYTHONMALLOC": "malloc"}
        return subprocess.run([sys.executable, *sys.argv], env={**os.environ, **settings}, check=False).returncode


class _Allocator:
    """The allocator below this process."""

    def __init__(self, library: str, *, with_python: bool) -> None:
        self._library = ctypes.CDLL(library)
        self._library.failing_add.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
        self._library.failing_arm.argtypes = [ctypes.c_long]
        for name in ("count", "failed", "live"):
            getattr(self._library, f"failing_{name}").restype = ctypes.c_long
        self._with_python = with_python

    def choose(self) -> None:
        """Choose the modules whose allocations fail: those that are loaded by now."""
        self._library.failing_clear()
        for line in Path("/proc/self/maps").read_text().splitlines():
            matched = re.match(r"(\w+)-(\w+) r-xp \S+ \S+ \S+ +(\S+)", line)
            is_own = matched is not None and "/pyrnnx/_kernels/" in matched[3]
            if matched and (is_own or (self._with_python and _is_python(matched[3]))):
                self._library.failing_add(int(matched[1], 16), int(matched[2], 16), is_own)

    def arm(self, k: int) -> None:
        self._library.failing_arm(k)

    def disarm(self) -> bool:
        """Return whether an allocation has failed; none fails from now on."""
        failed = bool(self._library.failing_failed())
        self._library.failing_arm(0)
        return failed

    def live(self) -> int:
        """Return the number of allocations of our own modules that are not freed."""
        gc.collect()
        return int(self._library.failing_live())


def _is_python(path: str) -> bool:
    return Path(path).resolve() == Path(sys.executable).resolve() or "/libpython3" in path


def exhaust(name: str, allocator: _Allocator, most: int) -> tuple[Counter[str], list[str]]:
    """Fail each allocation of a door; return the kinds of outcomes, and what was wrong."""
    from exhaustion.doors import DOORS, FRESH, flat

    door, attempt = DOORS[name], _in_a_child if name in FRESH else _attempt
    expected = [flat(door(number)) for number in range(3)]
    for _ in range(NOTHING_FAILS):
        flat(door(0))
    allocator.choose()
    left = []
    for _ in range(ROUNDS):
        outcomes, wrong = Counter[str](), list[str]()
        for k in range(1, most + 1):
            outcome = attempt(door, k % 3, k, allocator, expected)
            if not outcome:
                break
            if outcome.startswith("!"):
                wrong.append(f"allocation {k}: {outcome[1:]}")
            outcomes[outcome.lstrip("!").partition(":")[0]] += 1
        left.append(allocator.live())
    if left[1] != left[0]:
        wrong.append(f"{left[1] - left[0]} allocations are left")
    return outcomes, wrong[:10]


def _attempt(door: Any, number: int, k: int, allocator: _Allocator, expected: Any) -> str:
    """Return the outcome of a call whose k-th allocation fails, "" if it has no such one; with "!" if it is wrong."""
    from exhaustion.doors import flat

    from pyrnnx import PyrnnxError

    outcome, results = "", None
    allocator.arm(k)
    try:
        results = flat(door(number))
        failed = allocator.disarm()
    except MemoryError:
        failed, outcome = allocator.disarm(), "MemoryError"
    except (PyrnnxError, RuntimeError) as error:
        failed = allocator.disarm()
        outcome = f"{'' if _names_memory(error) else '!'}{type(error).__name__}: {error}"
    except BaseException as error:
        failed = allocator.disarm()
        outcome = f"!{type(error).__name__}: {error}"
    if results is not None:
        outcome = "right" if _same(results, expected[number]) else "!wrong: the result of this call"
    if not outcome.startswith("!"):
        after = (number + 1) % 3
        try:
            if not _same(flat(door(after)), expected[after]):
                outcome = f"!wrong next: the call after one with {outcome}"
        except BaseException as error:
            outcome = f"!{type(error).__name__} next: {error}, after {outcome}"
    return outcome if failed or outcome.startswith("!") else ""


def _names_memory(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, MemoryError) or "memory" in str(error) or str(error) == PYTHONS:
            return True
        error = error.__cause__ or error.__context__
    return False


def _same(results: Any, expected: Any) -> bool:
    import numpy as np

    return len(results) == len(expected) and all(map(np.array_equal, results, expected))


def _in_a_child(door: Any, number: int, k: int, allocator: _Allocator, expected: Any) -> str:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.write(write, _attempt(door, number, k, allocator, expected).encode()[:4000])
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        text = pipe.read().decode(errors="replace")
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return text if status == 0 else f"!the process ended ({status})"


def _told(outcomes: Counter[str]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted(outcomes.items())) or "none"


if __name__ == "__main__":
    sys.exit(main())
