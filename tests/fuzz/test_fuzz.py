"""The fuzzer: a short run, and planted faults that it must find."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz import doors
from fuzz.contract import check
from fuzz.pool import Task
from fuzz.seeds import MODELS, SOURCES, collect

pytest.importorskip("onnx")
# The sources that need no more than the extra `test`; .pt files need PyTorch.
QUICK = {kind: tuple(sources) for kind, sources in SOURCES.items()} | {
    "onnx": ("recurrent", "constructs"),
    "ir": ("recurrent",),
}
MODEL = {"read", "list", "call", "layers", "layer", "pickle"}
OTHERS = ("npy", "wav")
STEPS = {"onnx": MODEL, "ir": MODEL | {"export", "exported"}, "npy": {"list", "read"}, "wav": {"list", "read"}}


@pytest.fixture(
    scope="module",
    params=[pytest.param(kind, marks=[pytest.mark.torch] if kind == "pt" else []) for kind in sorted(SOURCES)],
)
def task(request: pytest.FixtureRequest) -> Task:
    for name in doors.NEEDED.get(request.param, ()):
        pytest.importorskip(name)
    return Task(request.param, collect(request.param, QUICK[request.param]))


class Always(random.Random):
    """For what is done now and then."""

    def random(self) -> float:
        return 0.0


@pytest.mark.slow
def test_seeds_are_sound(task: Task, tmp_path: Path) -> None:
    """Unbroken, each of them gives results all the way."""
    wanted = STEPS.get(task.kind, {"call"} if task.kind == "command" else {"read", "list", "run"})
    for seed in (one for seeds in task.seeds.values() for one in seeds):
        passed, finding = check(task.kind, seed, seed, tmp_path, Always())
        assert finding is None, f"{seed.name}: {finding}"
        if seed.name.endswith("none is named"):
            assert passed == [], seed.name
        else:
            assert wanted - set(passed) == set(), seed.name


def digest(kind: str) -> str:
    task = Task(kind, collect(kind, QUICK[kind]))
    return hashlib.sha256(b"".join(b"".join(task.file(k)[0][1:3]) for k in range(60))).hexdigest()


@pytest.mark.slow
def test_cases_are_the_same_in_every_run(tmp_path: Path) -> None:
    code = "from fuzz.test_fuzz import digest; print(digest('onnx'), digest('ir'))"
    code = f"import sys; sys.path[:] = {sys.path!r}; {code}"
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"  # another one than this process has
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    done = subprocess.run([sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout.decode().split() == [digest("onnx"), digest("ir")]


def test_cases_differ(task: Task) -> None:
    files = [task.file(k)[0] for k in range(60)]
    assert len({file.data + file.weights for file in files}) > 55
    assert files[:5] != [Task(task.kind, task.seeds, 1).file(k)[0] for k in range(5)]


@pytest.mark.e2e
@pytest.mark.parametrize("kind", ["onnx", "ir", *OTHERS])
def test_broken_files(kind: str, tmp_path: Path) -> None:
    """The first cases of the default seed; more of them by the command."""
    script = str(Path(__file__).with_name("run.py"))
    command = [sys.executable, script, kind, "--count=40", "--jobs=1", "--sources", *QUICK[kind]]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 cases" in done.stdout
    steps = dict(re.findall(r"(\w+) (\d+)", done.stdout.split("steps with a result: ")[1]))
    assert int(steps["call" if kind in MODELS else "read"]) > 4  # else the files are too broken to tell anything


# Code that replaces the reader of a model, and the signature of its finding.
HERE = " < own/planted/faults.py:fault"
FAULTS: dict[str, tuple[str, str]] = {
    "an exception": ("raise KeyError('x')", f"read: KeyError{HERE}"),
    "too slow": ("time.sleep(60)", f"more than 0.3 s{HERE}"),
    "too slow, busy": ("while True: pass", f"more than 0.3 s{HERE}"),
    "a process that exits": ("os._exit(3)", "the process ended (3)"),
    "a process that stops": ("os.kill(os.getpid(), signal.SIGSTOP)", "the process ended (-9)"),
    "a crash": ("ctypes.string_at(0)", f"Segmentation fault{HERE} < ctypes/__init__.py:string_at"),
    "memory": ("bytearray(2**30)", f"read: MemoryError{HERE}"),
    "memory, refused": (
        "try:\n    bytearray(2**30)\nexcept MemoryError as error:\n    raise PyrnnxError('no') from error",
        f"read: memory exhausted{HERE}",
    ),
    "a warning": ("warnings.warn('x 1')", "read: UserWarning in own/planted/faults.py: x "),
    "no end": ("raise Endless", f"read: a message of more than 4200 characters{HERE}"),
    "no message": ("raise PyrnnxError", f"read: an error without a message{HERE}"),
}  # fmt: skip

SLOW = ("too slow", "too slow, busy", "a process that stops")

PROGRAM = """
import json, sys
sys.path[:] = [{folder!r}, *{path!r}]
import faults
from fuzz import contract
from fuzz.pool import Limits, Task, fuzz
from fuzz.seeds import collect

contract.FOLDERS += ({folder!r} + "/",)
task, found = Task("ir", collect("ir", ["recurrent"])), {{}}
for name, fault in faults.FAULTS.items():
    contract.read = fault
    seconds = 0.3 if name in {slow!r} else 5  # else none of them waits
    report = fuzz(task, 3, jobs=3, limits=Limits(seconds, 2**29))
    found[name] = {{signature: sorted(numbers) for signature, numbers in report.findings.items()}}
    assert report.cases == 3
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, list[int]]]:
    """Cases by signature, of each fault."""
    folder = tmp_path_factory.mktemp("own", numbered=False) / "planted"
    folder.mkdir()
    lines = ["import ctypes, os, signal, time, warnings", "from pyrnnx import PyrnnxError", "FAULTS = {}"]
    lines += ["class Endless(PyrnnxError):", "    def __str__(self): return 'x' * 5000"]
    for name, (body, _) in FAULTS.items():
        lines += ["def fault(*given):", *(f"    {line}" for line in body.splitlines()), f"FAULTS[{name!r}] = fault"]
    (folder / "faults.py").write_text("\n".join(lines))
    program = PROGRAM.format(path=sys.path, folder=str(folder), slow=SLOW)
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, list[int]]] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(planted: dict[str, dict[str, list[int]]], name: str) -> None:
    """In every case: after one that ends its process, the next ones run all the same."""
    assert planted[name] == {FAULTS[name][1]: [0, 1, 2]}
