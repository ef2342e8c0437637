"""Samples of the pages run and print what the page says, as do the examples of docstrings."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import linecache
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rows import each_row
from samples import Sample, pages, read_samples

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="the tests stand without the documents")
ELSEWHERE = {"stateful_irs.md"}  # tests/frontends/openvino/test_stateful_docs.py runs it, family by family
SLOW = {"howto/shell.md"}  # each command is a process, and some start others
NIGHTLY = {"howto/torch_model.md"}  # PyTorch's exporter takes half a minute; tests/frontends/onnx/exports has more
COMMANDS = ("pyrnnx", "pytest")  # the others install something, or build these pages
NOT_RUN = {"conformance.md", "reliability.md", "scale.md"}  # their commands take minutes, and have tests of their own
DOCUMENTED = ("pyrnnx.reference", "pyrnnx.testing.same")
OPTIONAL = ("torch", "keras")
PAGES = {str(path.relative_to(DOCS)): list(read_samples(path)) for path in pages(DOCS)}
RUN = [name for name, samples in PAGES.items() if samples and name not in ELSEWHERE | NOT_RUN]


def page(name: str) -> Any:
    """A case: slow where it takes long or needs a model that is downloaded, torch where it needs that, else e2e."""
    needs = {sample.needs for sample in PAGES[name]}
    warned = pytest.mark.filterwarnings("ignore")  # of PyTorch and Keras, about each other and NumPy
    marks = [pytest.mark.nightly if name in NIGHTLY else pytest.mark.torch, warned] if needs & set(OPTIONAL) else []
    slow = [pytest.mark.slow] if "silero" in needs or name in SLOW else []
    return pytest.param(name, marks=marks + slow or [pytest.mark.e2e])


def run_command(line: str) -> str:
    """Return the output of a command line of a page, run by this interpreter."""
    name, *arguments = shlex.split(line, comments=True)
    options = ["-q", "-p", "no:cacheprovider"] if name == "pytest" else []
    done = subprocess.run(
        [sys.executable, "-m", name, *options, *arguments],
        env={**os.environ, "COLUMNS": "80", "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_sample(sample: Sample, namespace: dict[str, Any], where: str) -> None:
    if sample.file:
        Path(sample.file).write_text(sample.code)
        return
    printed = io.StringIO()
    if sample.language == "bash":
        lines = sample.code.replace("\\\n", " ").splitlines()
        printed.write("".join(run_command(line) for line in lines if line.split()[:1] and line.split()[0] in COMMANDS))
        if not printed.getvalue():
            return
    else:
        linecache.cache[where] = (len(sample.code), None, sample.code.splitlines(keepends=True), where)
        with contextlib.redirect_stdout(printed):
            exec(compile(sample.code, where, "exec"), namespace)
    assert sample.prints(printed.getvalue()), f"{where} prints\n{printed.getvalue()}\nand not\n{sample.expected}"


@pytest.mark.filterwarnings("default::DeprecationWarning")
@pytest.mark.parametrize("name", [page(name) for name in RUN])
def test_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    needs = {sample.needs for sample in PAGES[name]} - {""}
    if any("onnxruntime" in sample.code for sample in PAGES[name]):
        pytest.importorskip("onnxruntime")
    if any(sample.language == "bash" and "pyrnnx" in sample.code for sample in PAGES[name]):
        pytest.importorskip("typer")
        pytest.importorskip("rich")
    if "keras" in needs:
        os.environ.setdefault("KERAS_BACKEND", "torch")  # read when Keras is first imported
    for package in needs & set(OPTIONAL):
        pytest.importorskip(package)
    assert needs <= {*OPTIONAL, "silero"}
    if "silero" in needs:
        shutil.copy(request.getfixturevalue("silero_models") / "silero_vad.onnx", tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, sample in enumerate(PAGES[name], 1):
        run_sample(sample, namespace, f"{name}, block {number}")


def test_there_are_pages_with_samples() -> None:
    assert {"quickstart.md", "howto/onnx_lstm.md", "howto/frames.md", "howto/tests.md"} <= set(RUN)
    assert set(PAGES) >= ELSEWHERE | NOT_RUN


@each_row("name", DOCUMENTED)
def test_examples_of_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted >= 1
    assert not result.failed


def test_every_module_with_examples_is_run() -> None:
    package = Path(importlib.import_module("pyrnnx").__file__ or "").parent
    found = {
        path for path in (*package.rglob("*.py"), *(ROOT / "frontends").rglob("*.py")) if ">>> " in path.read_text()
    }
    homes = {Path(importlib.import_module(name).__file__ or "") for name in DOCUMENTED}
    assert found == homes
