"""The fuzzer: a little of it, and that it finds what it is there to find."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fuzz.contract import check
from fuzz.pool import Task
from fuzz.seeds import SOURCES, collect

pytest.importorskip("onnx")
TESTS = Path(__file__).parents[1]
# The sources that need no more than this package and onnx.
QUICK = {"onnx": ("recurrent", "constructs"), "ir": ("recurrent",)}


@pytest.fixture(scope="module", params=sorted(SOURCES))
def task(request: pytest.FixtureRequest) -> Task:
    return Task(request.param, collect(request.param, QUICK[request.param]))


class Always(random.Random):
    """For what is done now and then."""

    def random(self) -> float:
        return 0.0


def test_seeds_are_sound(task: Task, tmp_path: Path) -> None:
    """Unbroken, each of them gives results all the way."""
    wanted = {"read", "list", "call", "layers", "layer", "pickle", "compare"}
    wanted |= {"export", "exported"} if task.kind == "ir" else set()
    for seed in (one for seeds in task.seeds.values() for one in seeds):
        passed, finding = check(task.kind, seed, seed, tmp_path, Always())
        assert finding is None, f"{seed.name}: {finding}"
        assert wanted - set(passed) == set(), seed.name


def test_cases_are_the_same_in_every_run(task: Task) -> None:
    code = (
        f"import hashlib, sys; sys.path.insert(0, {str(TESTS)!r}); from fuzz.pool import Task; "
        f"from fuzz.seeds import collect; task = Task({task.kind!r}, collect({task.kind!r}, {QUICK[task.kind]!r})); "
        "print(hashlib.sha256(b''.join(b''.join(task.file(k)[0][1:3]) for k in range(200))).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1
    files = [task.file(k)[0] for k in range(200)]
    assert len({one.data + one.weights for one in files}) > 190
    assert files[:5] != [Task(task.kind, task.seeds, 1).file(k)[0] for k in range(5)]


@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_broken_files(kind: str) -> None:
    """The first cases of the default seed; more of them by the command."""
    command = [sys.executable, str(TESTS / "fuzz" / "run.py"), kind, "--count=300", "--sources", *QUICK[kind]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "300 cases" in done.stdout
    steps = dict(re.findall(r"(\w+) (\d+)", done.stdout.split("steps with a result: ")[1]))
    assert int(steps["call"]) > 30  # else the files are too broken to tell anything


# What is planted in the reading of IRs, and what it is found as.
HERE = " < frontends/openvino/model.py:read_model"
FAULTS: dict[str, tuple[str, str]] = {
    "an exception": ("raise KeyError('x')", f"read: KeyError{HERE} < planted/planted.py:fault"),
    "too slow": ("time.sleep(60)", f"more than 0.5 s{HERE} < planted/planted.py:fault"),
    "a process that exits": ("os._exit(3)", "the process ended (3)"),
    "a process that stops": ("os.kill(os.getpid(), signal.SIGSTOP)", "the process ended (-9)"),
    "a crash": ("ctypes.string_at(0)", f"Segmentation fault{HERE} < ctypes/__init__.py:string_at"),
    "memory": ("bytearray(2**30)", f"read: MemoryError{HERE} < planted/planted.py:fault"),
    "memory, refused": (
        "try:\n    bytearray(2**30)\nexcept MemoryError as error:\n    raise PyrnnxError('no') from error",
        "read: memory exhausted < planted/planted.py:fault",
    ),
    "a warning": ("warnings.warn('x 1')", "read: UserWarning in planted/planted.py: x "),
    "no end": ("raise Endless", f"read: a message of more than 4200 characters{HERE} < planted/planted.py:fault"),
    "no message": ("raise PyrnnxError", f"read: an error without a message{HERE} < planted/planted.py:fault"),
}  # fmt: skip

PROGRAM = """
import json, sys
sys.path[:0] = [{tests!r}, {folder!r}]
import planted
from fuzz.pool import Limits, Task, fuzz
from fuzz.seeds import collect
import pyrnnx.frontends.openvino.model as model

task, found = Task("ir", collect("ir", ["recurrent"])), {{}}
for name, fault in planted.FAULTS.items():
    model.load_net = fault
    report = fuzz(task, 3, jobs=2, limits=Limits(0.5, 2**29))
    found[name] = {{"cases": report.cases, **{{key: sorted(cases) for key, cases in report.findings.items()}}}}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("planted", numbered=False)
    lines = ["import ctypes, os, signal, time, warnings", "from pyrnnx import PyrnnxError", "FAULTS = {}"]
    lines += ["class Endless(PyrnnxError):", "    def __str__(self): return 'x' * 5000"]
    for name, (body, _) in FAULTS.items():
        lines += ["def fault(*given):", *(f"    {line}" for line in body.splitlines()), f"FAULTS[{name!r}] = fault"]
    (folder / "planted.py").write_text("\n".join(lines))
    program = PROGRAM.format(tests=str(TESTS), folder=str(folder))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(planted: dict[str, dict[str, Any]], name: str) -> None:
    """In every case: the next ones run all the same."""
    assert planted[name] == {"cases": 3, FAULTS[name][1]: [0, 1, 2]}
