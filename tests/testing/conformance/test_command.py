"""The command `pyrnnx conformance`, in a process of its own: what it prints and writes, and its exit status."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import planted
import pytest
from onnx.backend.test.loader import load_model_tests

import pyrnnx
from pyrnnx.testing.cases import random_cases
from pyrnnx.testing.conformance import Report, run_suites, to_html, to_markdown, to_text
from pyrnnx.testing.runtimes import RUNTIMES

TESTS = str(Path(planted.__file__).parent)
CASES = ("--cases", "random:1:20")
# Answers as ONNX's backend tests have them, or with an argument "never" not.
PROGRAM = """
import sys
from pathlib import Path
import numpy as np
import onnx
from pyrnnx.frontends.onnx import backend
if "never" in sys.argv:
    sys.exit("no answer")
folder, data = Path(sys.argv[1]), Path(sys.argv[1], "test_data_set_0")
model = onnx.load(folder / "model.onnx")
inputs = [onnx.numpy_helper.to_array(onnx.load_tensor(data / f"input_{k}.pb")) for k in range(len(model.graph.input))]
for k, output in enumerate(backend.run_model(model, inputs)):
    onnx.save_tensor(onnx.numpy_helper.from_array(output), data / f"output_{k}.pb")
"""


def command(*arguments: str, cwd: Path | str = TESTS, **keywords: Any) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "pyrnnx", "conformance", *arguments]
    return subprocess.run(words, cwd=cwd, capture_output=True, encoding="utf-8", check=False, timeout=300, **keywords)


def test_right(tmp_path: Path) -> None:
    names = ["--json", "r.json", "--html", "r.html", "--markdown", "r.md"]
    done = command("pyrnnx", *CASES, *names, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        f"Of 20 random cases of ONNX's operators (seed 1), pyrnnx {pyrnnx.__version__} runs 20 correctly\n"
        in done.stdout
    )
    line = f"python -m pyrnnx conformance pyrnnx {' '.join([*CASES, *names])}"
    runtime = RUNTIMES["pyrnnx"]
    report = Report({"pyrnnx": runtime.version()}, run_suites([runtime], "random:1:20"), command=line)
    assert done.stdout == f"{to_text(report)}\n"
    assert (tmp_path / "r.html").read_text() == to_html(report)
    assert (tmp_path / "r.md").read_text() == to_markdown(report)
    read = json.loads((tmp_path / "r.json").read_text())
    assert read == json.loads(json.dumps(report.to_dict()))
    assert [one["name"] for one in read["suites"][0]["verdicts"]] == [case.name for case in random_cases(1, 20)]


def test_wrong(tmp_path: Path) -> None:
    done = command("--function", "planted:four_wide", *CASES, "--write", str(tmp_path / "new" / "folder"))
    assert (done.returncode, done.stderr) == (1, "")
    assert "planted:four_wide:\n  - wrong, RNN: defaults" in done.stdout
    tests = load_model_tests(str(tmp_path / "new" / "folder"), "onnx")
    assert sorted(test.name for test in tests) == [
        f"test_planted_four_wide_wrong_{cell}_defaults" for cell in ("gru", "lstm", "rnn")
    ]
    for test in tests:
        report = Path(str(test.model_dir), "README.md").read_text()
        assert "T=1 N=1 I=1 H=5" in report
        assert "from planted import four_wide" in report


@pytest.mark.slow
def test_what_hangs_is_a_failure() -> None:
    done = command("--function", "planted:hangs", "--cases", "random:2:1", "--timeout", "0.2")
    assert done.returncode == 1
    assert "runs 0 correctly; 1 timed out" in " ".join(done.stdout.split())
    assert "timed out, RNN: defaults" in done.stdout


def test_refusals_are_no_failure(tmp_path: Path) -> None:
    arguments = ("--function", "planted:refuses_peepholes", "--cases", "random:3:9", "--write", str(tmp_path))
    done = command(*arguments)
    assert done.returncode == 0
    assert "refused, LSTM" not in done.stdout
    assert list(tmp_path.rglob("*.onnx")) == []
    done = command(*arguments, "--refused")
    assert done.returncode == 0
    assert "refused, LSTM: P" in done.stdout
    assert r"NotImplementedError: peepholes <b>&| are not there" in done.stdout
    assert [path.parent.name for path in tmp_path.rglob("*.onnx")] == ["test_planted_refuses_peepholes_refused_lstm_p"]


def test_a_command_is_a_runtime(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    words = f"{sys.executable} {tmp_path / 'program.py'} {{folder}}"
    done = command("--command", words, "--command", f"{words} never", "--cases", "random:1:1")
    assert done.returncode == 0
    flat = " ".join(done.stdout.split())
    assert f"{words} runs 1 correctly" in flat
    assert f"{words} never runs 0 correctly; 1 refused" in flat


def test_functions_of_the_folder_are_found(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "class All:\n    @staticmethod\n    def nothing(case, arrays):\n        raise OSError('no')\n"
    )
    done = command("--function", "mine:All.nothing", *CASES, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mine:All.nothing runs 0 correctly; 20 refused" in " ".join(done.stdout.split())


THERE = ", ".join(RUNTIMES)
REJECTED: dict[str, tuple[list[str], str]] = {
    "runtime": (["pyrnnx", "tensorflow"], f"conformance: runtime is 'tensorflow'; expected {THERE}"),
    "cases": (["--cases", "all"], "conformance: cases is 'all'; expected 'named' or 'random:SEED:N'"),
    "seed": (["--cases", "random:-1:5"], "conformance: cases is 'random:-1:5'; expected"),
    "no cases": (["--cases", "random:1:0"], "conformance: cases is 'random:1:0'; expected"),
    "function without module": (
        ["--function", "right"],
        "conformance: function is 'right'; expected package.module:name",
    ),
    "no such module": (["--function", "nowhere:right"], "'nowhere:right', which cannot be had (ModuleNotFoundError"),
    "no such function": (["--function", "planted:nothing"], "'planted:nothing', which cannot be had (AttributeError"),
    "no function": (["--function", "planted:NO_FUNCTION"], "'planted:NO_FUNCTION', a int; expected a function"),
    "no such command": (
        ["--command", "no-such-program {folder}"],
        "command 'no-such-program' is not there, or no program",
    ),
    "an empty command": (["--command", ""], "expected a program and its arguments"),
    "no such folder": (
        ["--json", "/nowhere/r.json"],
        "conformance: --json: '/nowhere/r.json' cannot be written (its folder is not there)",
    ),
    "one file for two": (["--html", "x", "--json", "x"], "conformance: --json, --html: expected a file for each"),
    "a folder": (["--html", "/"], "conformance: --html: '/' cannot be written (it is a folder)"),
    "a model as a report": (["--json", "model.onnx"], "--json: 'model.onnx' is a model's name; expected"),
    "a file as a folder": (["--write", f"{TESTS}/planted.py"], "planted.py' is no folder to write to"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name: str) -> None:
    arguments, words = REJECTED[name]
    done = command(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.startswith("pyrnnx: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_usage(seconds: str) -> None:
    done = command("--timeout", seconds)
    assert done.returncode == 2
    assert "is no number of seconds above 0" in done.stderr


def test_help() -> None:
    done = command("--help")
    assert done.returncode == 0
    for word in (
        "RUNTIME",
        "--cases",
        "random:SEED:N",
        "--command",
        "{folder}",
        "--function",
        "--write",
        "Exit status: 0",
    ):
        assert word in done.stdout


LATE = """
import sys
import pyrnnx, pyrnnx.cli
sys.argv = ["pyrnnx", *sys.argv[1:]]
try:
    pyrnnx.cli.main()
except SystemExit:
    pass
print(*(name for name in sys.modules if name.startswith("pyrnnx.testing")), file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", [["compare", "a.onnx", "b.onnx"], ["--help"], ["conformance", "--help"]])
def test_the_kit_is_imported_by_those_who_use_it(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-c", LATE, *arguments], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == ""


# A shell's background jobs, whose children these may be, ignore the signal.
INTERRUPTED = """
import signal, sys
import pyrnnx.cli
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(pyrnnx.cli.main(["conformance", "--function", "planted:hangs", "--cases", "random:2:1"]))
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children as Linux lists them")
@pytest.mark.parametrize("to_all", [False, True], ids=["to the process", "as a terminal sends it"])
def test_an_interrupt_ends_it_at_once(to_all: bool) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED],
        cwd=TESTS,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    children: list[str] = []
    while not children:
        assert process.poll() is None
        time.sleep(0.05)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    time.sleep(1.0)  # the case runs
    (os.killpg if to_all else os.kill)(process.pid, signal.SIGINT)
    started = time.monotonic()
    output, errors = process.communicate(timeout=30)
    assert time.monotonic() - started < 10
    assert (process.returncode, output, errors) == (130, b"", b"")
    assert not any(Path(f"/proc/{child}").exists() for child in children)


@pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")
def test_a_terminal_is_told_how_far_it_is() -> None:
    import pty

    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "pyrnnx", "conformance", "pyrnnx", "--cases", "random:1:3"]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=theirs, check=False, cwd=TESTS)
    os.close(theirs)
    told = os.read(ours, 65536).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "\rpyrnnx: 3 of 3 random cases" in told
    assert told.endswith("\r\x1b[K")
    assert "\n" not in told


@pytest.mark.skipif(os.name != "posix", reason="limits of a process")
def test_a_report_that_cannot_be_written_is_printed(tmp_path: Path) -> None:
    import resource

    (tmp_path / "r.json").write_text("before", encoding="utf-8")
    done = command(
        *("pyrnnx", "--cases", "random:1:2", "--timeout", "1e7", "--json", str(tmp_path / "r.json")),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)),
    )
    assert done.returncode == 2
    assert "runs 2 correctly" in " ".join(done.stdout.split())
    assert "r.json' cannot be written (File too large)" in done.stderr
    assert (tmp_path / "r.json").read_text(encoding="utf-8") == "before"
    assert len(list(tmp_path.iterdir())) == 1
