"""The command `pyrnnx conformance`: output, files and exit status."""

from __future__ import annotations

import json
import os
import subprocess
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import command
import numpy as np
import onnx
import onnx.backend.test.runner
import planted
import pytest
from onnx.backend.test.loader import load_model_tests
from rows import each_row

import pyrnnx
from pyrnnx.frontends.onnx import backend
from pyrnnx.testing.cases import CASES as CASES_OF_ONNX
from pyrnnx.testing.cases import random_cases
from pyrnnx.testing.runtimes import RUNTIMES

TESTS = str(Path(planted.__file__).parent)
CASES, FEW = ("--cases", "random:1:20"), ("--cases", "random:1:6")


def here(*arguments: str, cwd: Path | str = TESTS) -> subprocess.CompletedProcess[str]:
    return command.pyrnnx("conformance", *arguments, cwd=cwd)


@pytest.mark.e2e
def test_right(tmp_path: Path) -> None:
    done = here("pyrnnx", *FEW, "--json", "r.json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    heading = "6 random cases of ONNX's operators (seed 1):"
    assert f"{heading}\n  pyrnnx {pyrnnx.__version__}: 6 right\n" in done.stdout
    read = json.loads((tmp_path / "r.json").read_text())
    assert [row["name"] for row in read["suites"][0]["verdicts"]] == [case.name for case in random_cases(1, 6)]


def test_wrong() -> None:
    done = here("--function", "planted:four_wide", *CASES)
    assert (done.returncode, done.stderr) == (1, "")
    assert "planted:four_wide:\n  - wrong, " in done.stdout


@pytest.mark.e2e
def test_refusals_are_no_failure(tmp_path: Path) -> None:
    done = here("--function", "planted:refuses_peepholes", "--cases", "random:3:9", "--json", str(tmp_path / "r.json"))
    assert done.returncode == 0
    assert "- refused, LSTM" not in done.stdout
    verdicts = json.loads((tmp_path / "r.json").read_text())["suites"][0]["verdicts"]
    details = [row["verdicts"]["planted:refuses_peepholes"].get("detail", "") for row in verdicts]
    assert "NotImplementedError: peepholes <b>&| are not there second line" in details


@pytest.mark.parametrize("which", ["random", pytest.param("named", marks=pytest.mark.nightly)])
def test_export(which: str, tmp_path: Path) -> None:
    """onnx's own runner loads each case of ONNX, and pyrnnx's backend passes it; a changed result fails."""
    count, choice = (6, FEW) if which == "random" else (len(CASES_OF_ONNX), ())
    done = here("--export", str(tmp_path / "new"), *choice)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{count} cases of ONNX's operators: {tmp_path / 'new' / 'onnx'}")
    assert ("; " in done.stdout) == (which == "named")  # those of OpenVINO, which are left out
    tests = load_model_tests(str(tmp_path / "new"), "onnx")
    assert len(tests) == count
    assert failures_of(tests) == {}
    spoiled = next(test for test in tests if "lstm" in test.name)
    file = Path(str(spoiled.model_dir), "test_data_set_0", "output_0.pb")
    changed = onnx.numpy_helper.to_array(onnx.load_tensor(file)) + np.float32(0.01)
    file.write_bytes(onnx.numpy_helper.from_array(changed).SerializeToString())
    assert list(failures_of([spoiled])) == [spoiled.name]


def failures_of(tests: list[Any]) -> dict[str, str]:
    """Run tests of onnx's loader with onnx's runner and pyrnnx's backend."""
    own = mock.patch.object(
        onnx.backend.test.runner, "load_model_tests", lambda kind: tests if kind == "simple" else []
    )
    with own:
        runner = onnx.backend.test.runner.Runner(backend.Backend, __name__)
    case = runner.test_cases["OnnxBackendSimpleModelTest"]
    names = [name for name in dir(case) if name.startswith("test_") and name.endswith("_cpu")]
    assert len(names) == len(tests)
    return {name.removesuffix("_cpu"): found for name in names if (found := failure(case(name)))}


def failure(test: unittest.TestCase) -> str:
    try:
        test.debug()
    except (Exception, unittest.SkipTest) as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    return ""


THERE = ", ".join(RUNTIMES)
REJECTED: list[tuple[list[str], str]] = [
    (["pyrnnx", "tensorflow"], f"conformance: RUNTIME is 'tensorflow'; expected one of {THERE}"),
    (["--export", "out", "pyrnnx", "--json", "x"], "--export runs nothing; expected it without RUNTIME, --json"),
    (["--export", f"{TESTS}/planted.py"], "planted.py' cannot be written ("),
    (["--cases", "all"], "conformance: cases is 'all'; expected 'named' or 'random:SEED:N'"),
    (["--cases", "random:-1:5"], "conformance: cases is 'random:-1:5'; expected"),
    (["--cases", "random:1:0"], "conformance: cases is 'random:1:0'; expected"),
    (["--function", "right"], "conformance: --function is 'right'; expected package.module:name"),
    (["--function", "nowhere:right"], "'nowhere:right', which cannot be imported (ModuleNotFoundError"),
    (["--function", "planted:nothing"], "'planted:nothing', which cannot be imported (AttributeError"),
    (["--function", "planted:NO_FUNCTION"], "'planted:NO_FUNCTION', a int; expected a function"),
    (["--command", "no-such-program {folder}"], "--command is 'no-such-program'; expected an installed program"),
    (["--command", ""], "expected a program and its arguments"),
    (
        ["--json", "/nowhere/r.json"],
        "conformance: --json: '/nowhere/r.json' cannot be written (its folder does not exist)",
    ),
    (["--json", "model.onnx"], "--json: 'model.onnx' has the suffix of a model; expected"),
]


@each_row(("arguments", "words"), REJECTED, ids=[row[-1] for row in REJECTED])
def test_rejected(arguments: list[str], words: str) -> None:
    done = here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.startswith("pyrnnx: ")
    assert done.stderr.count("\n") == 1


@each_row("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_usage(seconds: str) -> None:
    done = here("--timeout", seconds)
    assert done.returncode == 2
    assert "; expected a " in done.stderr


@pytest.mark.e2e
@pytest.mark.skipif(os.name != "posix", reason="limits of a process")
def test_a_report_that_cannot_be_written_is_printed(tmp_path: Path) -> None:
    import resource

    (tmp_path / "r.json").write_text("before", encoding="utf-8")
    done = command.process(
        *("conformance", "pyrnnx", "--cases", "random:1:2", "--timeout", "1e7", "--json", str(tmp_path / "r.json")),
        env={"PYTHONDONTWRITEBYTECODE": "1"},  # which the limit would cut
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)),
    )
    assert done.returncode == 2
    assert f"{pyrnnx.__version__}: 2 right" in " ".join(done.stdout.split())
    assert "r.json' cannot be written (File too large)" in done.stderr
    assert (tmp_path / "r.json").read_text(encoding="utf-8") == "before"
    assert len(list(tmp_path.iterdir())) == 1
