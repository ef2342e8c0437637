"""What all commands have in common: help, statuses, errors in one line, JSON, completion, terminals."""

from __future__ import annotations

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
from command import environment, in_terminal
from command import pyrnnx as command

import pyrnnx
import pyrnnx.cli.commands
from pyrnnx import _process, config
from pyrnnx.cli import main
from pyrnnx.cli.app import app
from pyrnnx.cli.result import Result, plain_values, render
from pyrnnx.cli.status import MEANINGS, Status

EXAMPLES = Path(__file__).parents[2] / "examples"
ONNX, XML = (str(EXAMPLES / f"small_rnn.{suffix}") for suffix in ("onnx", "xml"))
COMMANDS = [str(one.name) for one in app.registered_commands]
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


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert re.search(rf"Example: .*pyrnnx {name}", squeezed(shown))


def test_nothing_is_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "Usage: pyrnnx" in capsys.readouterr().out


def test_version() -> None:
    done = command("--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{pyrnnx.__version__}\n", "")


USAGE: dict[str, tuple[list[str], str]] = {
    "an unknown command": (["inspct"], "No such command 'inspct'. Did you mean 'inspect'?"),
    "an unknown option": (["inspect", ONNX, "--jsno"], "No such option"),
    "a missing argument": (["compare", ONNX], "Missing argument 'B'"),
    "too many arguments": (["inspect", ONNX, XML], "unexpected extra argument"),
    "an option without its value": (["run", ONNX, "--random"], "--random"),
    "line breaks": (["in\nspect"], r"in\nspect"),
}


@pytest.mark.parametrize("name", USAGE)
def test_usage(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, words = USAGE[name]
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.startswith("pyrnnx: ")
    assert captured.err.count("\n") == 1
    assert captured.err.removesuffix("\n").isprintable()


@pytest.mark.parametrize("first", [True, False])
def test_debug_shows_the_traceback(first: bool, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["inspect", "missing.onnx"]
    assert main(["--debug", *arguments] if first else [*arguments, "--debug"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "Traceback (most recent call last):"
    assert told[-1].startswith("pyrnnx: ONNX model: 'missing.onnx' cannot be read")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError(), "pyrnnx: it needs more memory than there is\n"),
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

    monkeypatch.setattr("pyrnnx.config.get_config", fail)
    assert main(["config"]) == 2
    assert capsys.readouterr() == ("", words)


@pytest.mark.parametrize(("variable", "value"), [("PYRNNX_ENGINE", "x"), ("PYRNNX_ISA", "nonsense")])
def test_a_wrong_environment_is_a_line(variable: str, value: str) -> None:
    """Though pyrnnx cannot even be imported then."""
    env = {"PYRNNX_ENGINE": "", "PYRNNX_ISA": "", variable: value}
    done = command("inspect", ONNX, env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"pyrnnx: environment variable {variable} is {value!r}; expected one of ")
    assert done.stderr.count("\n") == 1
    done = command("inspect", ONNX, "--debug", env=env)
    assert done.returncode == 1
    assert done.stderr.startswith("Traceback")


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
    monkeypatch.setattr(sys, "orig_argv", ["python", "-X", "dev", "-m", "pyrnnx", "config"])
    monkeypatch.setattr(sys, "argv", ["-m", "config"])
    assert _process.is_command()


def test_an_interrupt_while_typer_parses(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("typer.core.TyperGroup.make_context", interrupted)
    assert main(["inspect", ONNX]) == Status.INTERRUPTED
    assert capsys.readouterr().out == ""


@posix
def test_an_interrupt_while_pyrnnx_is_imported() -> None:
    """A package that raises it stands for numpy, which takes long."""
    code = "import signal; signal.raise_signal(signal.SIGINT)"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "numpy.py").write_text(code, encoding="utf-8")
        done = command("config", env={"PYTHONPATH": folder})
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


WITHOUT = """
import sys
sys.modules["{package}"] = None
from pyrnnx.cli import main
sys.exit(main({arguments}))
"""


@pytest.mark.parametrize(("name", "arguments"), [("typer", ["config"]), ("rich", ["config"])])
def test_without_its_packages_it_says_what_to_install(name: str, arguments: list[str]) -> None:
    code = WITHOUT.format(package=name, arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert 'install "pyrnnx[cli]"' in done.stderr
    assert done.stderr.count("\n") == 1


def test_config() -> None:
    done = command("config", "--json", env={"PYRNNX_ENGINE": "blas"})
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert {name: found[name] for name in ("pyrnnx", "engine", "instruction_set", "threads")} == {
        "pyrnnx": pyrnnx.__version__,
        "engine": "blas",
        "instruction_set": None,
        "threads": config._physical_cores(),
    }
    assert found["runtimes"]["pyrnnx"] == pyrnnx.__version__
    assert found["packages"]["python"] == sys.version.partition(" ")[0]


def test_config_is_what_show_config_prints(capsys: pytest.CaptureFixture[str]) -> None:
    pyrnnx.show_config()
    lines = [line.split(":", 1) for line in capsys.readouterr().out.splitlines()]
    assert main(["config"]) == 0
    shown = squeezed(capsys.readouterr().out)
    for name, value in lines:
        assert f"{name} {value.strip()}" in shown
    assert pyrnnx.get_config()["supported"] == lines[3][1].strip().split(", ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_shown(shell: str) -> None:
    env = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # else that of the parent process is taken
    done = command("--show-completion", shell, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_PYRNNX_COMPLETE" in done.stdout


COMPLETED = {
    "commands": (["pyrnnx", "in"], ["inspect"]),
    "files and folders": (["pyrnnx", "inspect", f"{EXAMPLES}/"], [ONNX, XML]),
    "runtimes": (["pyrnnx", "conformance", "onnxr"], ["onnxruntime"]),
}


@pytest.mark.parametrize("name", COMPLETED)
def test_completion(name: str) -> None:
    words, expected = COMPLETED[name]
    env = {
        "_PYRNNX_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }
    done = command(env=env)
    assert (done.returncode, done.stdout.split()) == (0, expected)


@posix
def test_a_terminal_has_colours_and_80_columns() -> None:
    status, text = in_terminal("inspect", ONNX)
    assert status == 0
    assert "\x1b[1m" in text
    plain = re.sub("\x1b\\[[0-9;]*m", "", text)
    assert max(map(len, plain.splitlines())) <= 80
    assert "small_rnn" in plain
    status, text = in_terminal("inspect", ONNX, NO_COLOR="1")
    assert status == 0
    assert not re.search("\x1b\\[[0-9;]*3[0-9]m", text)


@posix
def test_a_narrow_terminal() -> None:
    status, text = in_terminal("run", ONNX, "--random", "0", columns=40)
    assert status == 0
    assert max(len(re.sub("\x1b\\[[0-9;]*m", "", line)) for line in text.splitlines()) <= 40


@posix
def test_pipes_are_plain_whatever_the_terminal(tmp_path: Path) -> None:
    """Standard input is a wide terminal: the width of what is piped is not its."""
    done = command("inspect", ONNX, env={"COLUMNS": "200", "FORCE_COLOR": "1"})
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())


def test_a_terminal_without_unicode_shows_tables() -> None:
    done = command("inspect", ONNX, env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "\\u" not in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full of Linux")
def test_a_help_that_cannot_be_written() -> None:
    with open("/dev/full", "w") as full:
        done = command("--help", stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith("pyrnnx: the result cannot be written (")
    assert done.stderr.count("\n") == 1


@posix
def test_a_help_that_nobody_reads() -> None:
    read, write = os.pipe()
    os.close(read)
    done = command("--help", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


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
    with pytest.raises(TypeError, match="a object has no form in JSON"):
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


def test_the_help_imports_little() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True, cwd="/", env=environment()
    )
    assert done.stderr.strip() == ""


@pytest.mark.parametrize("debug", [(), ("--debug",)])
def test_what_is_mistyped_is_one_line(debug: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """With --debug, too: a traceback would be that of a library."""
    for words, told in ((["inspect", "m.onnx", "--jsno"], "--jsno"), (["frobnicate"], "expected one of bench, check,")):
        assert main([*words, *debug]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert told in line
