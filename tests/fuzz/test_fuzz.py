"""The fuzzer: a short run, and planted faults that it must find."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")

from fuzz.contract import check
from fuzz.pool import Task
from fuzz.seeds import collect

# Sources that need no packages beyond the extra `test`.
QUICK = {"onnx": ("recurrent", "constructs"), "ir": ("recurrent",)}
MODEL = {"read", "list", "call", "layers", "pickle"}
STEPS = {"onnx": MODEL, "ir": MODEL | {"export", "exported"}}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=QUICK)
def task(request: pytest.FixtureRequest) -> Task:
    return Task(request.param, collect(request.param, QUICK[request.param]))


class Always(random.Random):
    """Random numbers with which every optional step is done."""

    def random(self) -> float:
        return 0.0


def test_seeds_are_sound(task: Task, tmp_path: Path) -> None:
    """Before they are altered, all of them give results in every step; some IRs are not exported, which says why."""
    steps: set[str] = set()
    for seed in (seed for seeds in task.seeds.values() for seed in seeds):
        passed, finding = check(task.kind, seed, seed, tmp_path, Always())
        assert finding is None, f"{seed.name}: {finding}"
        assert MODEL - set(passed) == set(), seed.name
        steps |= set(passed)
    assert STEPS[task.kind] - steps == set()


def test_broken_files(task: Task, tmp_path: Path) -> None:
    """Run the first cases of the default seed by the command."""
    script = str(Path(__file__).with_name("run.py"))
    command = [sys.executable, script, task.kind, "--count=60", "--jobs=1", "--sources", *QUICK[task.kind]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 cases" in done.stdout
    steps = dict(re.findall(r"(\w+) (\d+)", done.stdout.split("steps with a result: ")[1]))
    assert int(steps["call"]) > 4  # otherwise the files are too broken to show anything


# Code that replaces the reader of a model, and the signature of its finding.
HERE = " < own/planted/faults.py:fault"
FAULTS: dict[str, tuple[str, str]] = {
    "an exception": ("raise KeyError('x')", f"read: KeyError{HERE}"),
    "too slow": ("time.sleep(60)", f"more than 2 s{HERE}"),
    "a process that exits": ("os._exit(3)", "the process ended (3)"),
    "a crash": ("ctypes.string_at(0)", f"Segmentation fault{HERE} < ctypes/__init__.py:string_at"),
    "memory": ("bytearray(2**30)", f"read: MemoryError{HERE}"),
    "a warning": ("warnings.warn('x 1')", "read: UserWarning in own/planted/faults.py: x "),
    "no message": ("raise PyrnnxError", f"read: an error without a message{HERE}"),
}

PROGRAM = """
import json, sys
sys.path[:] = [{folder!r}, *{path!r}]
import faults
from fuzz import contract
from fuzz.pool import Limits, Task, fuzz
from fuzz.seeds import collect

contract.FOLDERS += ({folder!r} + "/",)
task, findings = Task("ir", collect("ir", ["recurrent"])), {{}}
for name, fault in faults.FAULTS.items():
    contract.read = fault
    findings[name] = fuzz(task, 3, jobs=3, limits=Limits(2, 2**29)).findings
print(json.dumps(findings))
"""


def test_planted_faults_are_found(tmp_path: Path) -> None:
    """In every case: if one ends its process, the next ones still run."""
    folder = tmp_path / "own" / "planted"
    folder.mkdir(parents=True)
    lines = ["import ctypes, os, signal, time, warnings", "from pyrnnx import PyrnnxError", "FAULTS = {}"]
    for name, (body, _) in FAULTS.items():
        lines += ["def fault(*arguments):", *(f"    {line}" for line in body.splitlines()), f"FAULTS[{name!r}] = fault"]
    (folder / "faults.py").write_text("\n".join(lines))
    program = PROGRAM.format(path=sys.path, folder=str(folder))
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    findings = {
        name: {key: sorted(cases) for key, cases in own.items()} for name, own in json.loads(done.stdout).items()
    }
    assert findings == {name: {signature: [0, 1, 2]} for name, (_, signature) in FAULTS.items()}
