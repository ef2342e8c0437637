"""The fuzzer: a short run, and planted faults that it must find."""

from __future__ import annotations

import ctypes
import functools
import os
import random
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnx")

from fuzz import contract
from fuzz.pool import Limits, Task, fuzz
from fuzz.seeds import collect

from pyrnnx import PyrnnxError

# Sources that need no packages beyond the extra `test`.
QUICK = {"onnx": ("recurrent", "constructs"), "ir": ("recurrent",)}
MODEL = {"read", "list", "call", "layers", "pickle"}
STEPS = {"onnx": MODEL, "ir": MODEL | {"export", "exported"}}

pytestmark = pytest.mark.slow
each_kind = pytest.mark.parametrize("kind", QUICK)
collected = functools.cache(lambda kind: collect(kind, QUICK[kind]))


class Always(random.Random):
    """Random numbers with which every optional step is done."""

    def random(self) -> float:
        return 0.0


@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.nightly)])
@each_kind
def test_seeds_are_sound(kind: str, stride: int, tmp_path: Path) -> None:
    """Before they are altered, all of them give results in every step; some IRs are not exported, which says why."""
    steps: set[str] = set()
    for seed in (seed for seeds in collected(kind).values() for seed in seeds[::stride]):
        passed, finding = contract.check(kind, seed, tmp_path, Always())
        assert finding is None, f"{seed.name}: {finding}"
        assert MODEL - set(passed) == set(), seed.name
        steps |= set(passed)
    assert STEPS[kind] - steps == set()


@each_kind
def test_broken_files(kind: str, tmp_path: Path) -> None:
    """Run the first cases of the default seed by the command."""
    script = str(Path(__file__).with_name("run.py"))
    command = [sys.executable, script, kind, "--count=60", "--sources", *QUICK[kind]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 cases" in done.stdout
    steps = dict(re.findall(r"(\w+) (\d+)", done.stdout.split("steps with a result: ")[1]))
    assert int(steps["call"]) > 4  # otherwise the files are too broken to show anything


def fails(*arguments: Any) -> Any:
    raise KeyError("x")


def says_nothing(*arguments: Any) -> Any:
    raise PyrnnxError


FAULTS: dict[Callable[..., Any], str] = {  # in place of the reader of a model, and the beginning of the finding
    fails: "read: KeyError < fuzz/test_fuzz.py:fails",
    says_nothing: "read: an error without a message",
    lambda *_: time.sleep(60): "more than 0.5 s",
    lambda *_: os._exit(3): "the process ended (3)",
    lambda *_: ctypes.string_at(0): "Segmentation fault < ctypes/__init__.py:string_at",
    lambda *_: bytearray(2**30): "read: MemoryError",
    lambda *_: warnings.warn("x 1", stacklevel=1): "read: UserWarning in fuzz/test_fuzz.py: x ",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_found(fault: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """In every case: if one ends its process, the next ones still run."""
    monkeypatch.setattr(contract, "read", fault)
    findings = fuzz(Task("ir", collected("ir")), 2, limits=Limits(0.5, 2**29)).findings
    [(signature, cases)] = findings.items()
    assert signature.startswith(FAULTS[fault])
    assert cases == [0, 1]
