"""Features that all commands share: help, statuses, errors in one line, JSON, completion, terminals."""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from command import environment, process
from command import pyrnnx as command
from rows import each_row

import pyrnnx
from pyrnnx import config
from pyrnnx._internal import process as _process
from pyrnnx.cli import main
from pyrnnx.cli.commands import COMMANDS
from pyrnnx.cli.result import Result, plain_values, render
from pyrnnx.cli.status import MEANINGS, Status

EXAMPLES = Path(__file__).parents[2] / "examples"
ONNX, XML = (str(EXAMPLES / f"small_rnn.{suffix}") for suffix in ("onnx", "xml"))
posix = pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals")


def squeezed(text: str) -> str:
    """Without frames and line breaks."""
    return " ".join(re.sub("[│╭╮╰╯─]", " ", text).split())


def test_help_lists_the_commands_and_the_statuses() -> None:
    done = command("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "\x1b" not in done.stdout
    words = squeezed(done.stdout)
    for name in COMMANDS:
        assert f" {name} " in words
    for status in Status:
        assert f"{int(status)} {MEANINGS[status]}" in words


def test_the_lines_of_the_commands_are_those_of_their_own_help() -> None:
    for name, line in COMMANDS.items():
        function = getattr(importlib.import_module(f"pyrnnx.cli.commands.{name}"), name)
        assert function.__doc__.partition("\n\n")[0] == line


@each_row("name", COMMANDS)
def test_every_command_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert re.search(rf"Example: .*pyrnnx {name}", squeezed(shown))


PROCESSES = {
    "run": [ONNX, "--seed", "0"],
    "compare": [ONNX, XML],
    "convert": [ONNX, "{}/m.xml"],
    "check": [ONNX],
    "bench": ["--op", "GRU", "--shape", "5,2,3,4", "--repeat", "5"],
}
E2E = [name if name == "run" else pytest.param(name, marks=pytest.mark.e2e) for name in PROCESSES]


@pytest.mark.parametrize("name", E2E)
def test_a_process_of_its_own(name: str, tmp_path: Path) -> None:
    if name in ("check", "bench", "convert"):  # the last warns where onnx's evaluator compares what was written
        pytest.importorskip("onnxruntime")
    done = process(name, *(word.replace("{}", str(tmp_path)) for word in PROCESSES[name]))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_nothing_is_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Usage: pyrnnx" in capsys.readouterr().out


def test_config(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["engine"] == ("blas" if config.ISA == "blas" else "simd")
    assert facts["runtimes"]["pyrnnx"] == facts["pyrnnx"] == pyrnnx.__version__
    assert facts["packages"]["python"] == sys.version.partition(" ")[0]
    pyrnnx.show_config()
    lines = [line.split(":", 1) for line in capsys.readouterr().out.splitlines()]
    assert main(["config"]) == 0
    shown = squeezed(capsys.readouterr().out)
    assert all(f"{name} {value.strip()}" in shown for name, value in lines)


def test_version() -> None:
    done = command("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{pyrnnx.__version__}\n", "")


USAGE: dict[str, tuple[list[str], str]] = {
    "no command": (["frobnicate"], "expected one of bench, check,"),
    "an unknown command": (["inspct"], "No such command 'inspct'. Did you mean 'inspect'?"),
    "an unknown option": (["inspect", ONNX, "--jsno"], "No such option"),
    "a missing argument": (["compare", ONNX], "Missing argument 'B'"),
    "too many arguments": (["inspect", ONNX, XML], "unexpected extra argument"),
    "line breaks": (["in\nspect"], r"in\nspect"),
}


@each_row("debug", [[], ["--debug"]])
@each_row("name", USAGE)
def test_usage(name: str, debug: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Also with --debug: a traceback would come from a library."""
    arguments, words = USAGE[name]
    assert main([*arguments, *debug]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.startswith("pyrnnx: ")
    assert captured.err.count("\n") == 1
    assert captured.err.removesuffix("\n").isprintable()


@each_row("first", [True, False])
def test_debug_shows_the_traceback(first: bool, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["inspect", "missing.onnx"]
    assert main(["--debug", *arguments] if first else [*arguments, "--debug"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "Traceback (most recent call last):"
    assert told[-1].startswith("pyrnnx: ONNX model: 'missing.onnx' cannot be read")


@each_row(
    ("error", "words"),
    [
        (MemoryError(), "pyrnnx: not enough memory\n"),
        (PermissionError(13, "Permission denied", "a\nb"), r"pyrnnx: 'a\nb': Permission denied" + "\n"),
        (OSError("no\nway"), r"pyrnnx: no\nway" + "\n"),
        (ZeroDivisionError("oh"), "pyrnnx: an error in pyrnnx itself (ZeroDivisionError: oh); --debug shows where\n"),
        (ImportError("the package onnx is not installed"), "pyrnnx: the package onnx is not installed\n"),
    ],
)
def test_other_errors_are_a_line(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("pyrnnx.cli.commands.config.get_config", fail)
    assert main(["config"]) == 2
    assert capsys.readouterr() == ("", words)


def test_a_wrong_environment_is_a_line() -> None:
    done = process("inspect", ONNX, env={"PYRNNX_ENGINE": "x"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("pyrnnx: environment variable PYRNNX_ENGINE is 'x'; expected one of ")
    assert done.stderr.count("\n") == 1


def test_the_script_tells_as_the_module_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs that import pyrnnx keep their tracebacks."""
    told = {
        ("/usr/bin/pyrnnx",): True,
        ("pyrnnx.exe", "inspect"): True,
        ("/site/pytest/__main__.py", "pyrnnx"): False,
        ("-m", "pyrnnx"): False,  # of another module that is looked for
        ("-c",): False,
        (): False,
    }
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "other", "pyrnnx"])
    for words, expected in told.items():
        monkeypatch.setattr(sys, "argv", list(words))
        assert _process.is_command() is expected, words
        monkeypatch.setattr(sys, "excepthook", sys.__excepthook__)
        _process.report_import_errors()
        assert (sys.excepthook is _process.report) is expected, words
    monkeypatch.setattr(sys, "orig_argv", ["python", "-X", "dev", "-m", "pyrnnx", "config"])
    monkeypatch.setattr(sys, "argv", ["-m", "config"])
    assert _process.is_command()


def test_an_interrupt_while_typer_parses(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.core.TyperGroup.make_context", interrupted)
    assert main(["inspect", ONNX]) == Status.INTERRUPTED
    assert capsys.readouterr().out == ""


@pytest.mark.e2e
@posix
def test_an_interrupt_while_pyrnnx_is_imported() -> None:
    """A package that raises it stands for numpy, which takes long."""
    code = "import signal; signal.raise_signal(signal.SIGINT)"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "numpy.py").write_text(code, encoding="utf-8")
        done = process("config", env={"PYTHONPATH": folder})
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


WITHOUT = """
import sys
sys.modules["{package}"] = None
from pyrnnx.cli import main
sys.exit(main(["config"]))
"""


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["typer", "rich"])
def test_without_its_packages_it_says_what_to_install(name: str) -> None:
    code = WITHOUT.format(package=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "the command needs the package" in done.stderr
    assert done.stderr.count("\n") == 1


def test_values_of_json() -> None:
    import numpy as np

    given: dict[Any, Any] = {
        "a": [np.float32(0.5), float("nan"), -np.inf],
        "b": (np.arange(2), None, True),
        3: {"c": "\x1b\udcff"},
    }
    text = render(Result(lambda: given), as_json=True)
    assert text.isascii()
    assert json.loads(text) == {"a": [0.5, "nan", "-inf"], "b": [[0, 1], None, True], "3": {"c": "\x1b\udcff"}}
    with pytest.raises(TypeError, match="JSON cannot express a object"):
        plain_values([object()])


def test_markup_is_text() -> None:
    assert render(Result({}, ["[bold]a[/bold] :smile:"]), as_json=False) == "[bold]a[/bold] :smile:\n"


IMPORTED = """
import sys
from pyrnnx.cli import main
main(["--help"])
late = ("onnx", "onnxruntime", "lxml", "pyrnnx.testing", "pyrnnx.frontends", "matplotlib")
print(*(name for name in late if name in sys.modules), file=sys.stderr)
"""


@pytest.mark.e2e
def test_the_help_imports_little() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True, cwd="/", env=environment()
    )
    assert done.stderr.strip() == ""
