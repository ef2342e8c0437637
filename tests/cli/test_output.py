"""Destinations of a result: terminals, pipes, and closed streams."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command import in_terminal, process, process_in_terminal
from command import pyrnnx as command
from rows import each_row

from pyrnnx.cli import main, streams
from pyrnnx.cli.status import Status

EXAMPLES = Path(__file__).parents[2] / "examples"
ONNX = str(EXAMPLES / "small_rnn.onnx")
posix = pytest.mark.skipif(os.name != "posix", reason="pseudo-terminals, and streams of POSIX")


@pytest.mark.parametrize("run", [in_terminal, pytest.param(process_in_terminal, marks=[posix, pytest.mark.e2e])])
def test_a_terminal_has_colours_and_80_columns(run: Callable[..., tuple[int, str]]) -> None:
    status, text = run("inspect", ONNX)
    assert status == 0
    assert "\x1b[1m" in text
    plain = re.sub("\x1b\\[[0-9;]*m", "", text)
    assert max(map(len, plain.splitlines())) <= 80
    assert "small_rnn" in plain


def test_pipes_are_plain_whatever_the_terminal() -> None:
    """The environment says the width of a terminal; a pipe has its own."""
    done = command("inspect", ONNX, env={"COLUMNS": "200", "FORCE_COLOR": "1"})
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())


def test_a_terminal_without_unicode_shows_tables() -> None:
    done = command("inspect", ONNX, encoding="ascii")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert "\\u" not in done.stdout


@each_row("arguments", [["--help"], ["inspect", ONNX]], ids=lambda words: words[0])
def test_what_cannot_be_written_is_said(arguments: list[str]) -> None:
    done = command(*arguments, stdout=None)
    assert done.returncode == Status.REJECTED
    assert done.stderr == "pyrnnx: the result cannot be written (standard output is closed)\n"
    if Path("/dev/full").exists():  # Linux
        with open("/dev/full", "w") as full:
            done = command(*arguments, stdout=full)
        assert done.returncode == Status.REJECTED
        assert done.stderr.startswith("pyrnnx: the result cannot be written (No space left on device)")
        assert done.stderr.count("\n") == 1


@posix
@each_row("arguments", [["--help"], ["inspect", ONNX]], ids=lambda words: words[0])
def test_nobody_reads(arguments: list[str]) -> None:
    """`pyrnnx inspect model | head -1` ends quietly if head exits first."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = command(*arguments, stdout=pipe)
    assert (done.returncode, done.stderr) == (Status.CLOSED_PIPE, "")


@each_row(
    ("arguments", "line"),
    [
        (["conformance", "pyrnnx", "--cases", "random:0:9"], "pyrnnx: pyrnnx: 4 of "),
        (["run", ONNX, "--seed", "0", "--repeat", "3"], "pyrnnx: calls: 3 of 3"),
    ],
)
def test_progress_in_a_pipe(
    arguments: list[str], line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Lines from time to time, so that a log is not silent for minutes; none for a short command."""
    if arguments[0] == "run":  # of conformance, tests/testing/conformance/test_command.py looks at it
        assert main(arguments) == 0
        assert capsys.readouterr().err == ""
    with monkeypatch.context() as patch:
        patch.setattr(streams._Sparse, "SECONDS", 0)
        assert main(arguments) == 0
    assert line in capsys.readouterr().err


@pytest.mark.e2e
@posix
def test_a_closed_output() -> None:
    """The shell closes the output with `>&-`."""
    done = process("inspect", ONNX, preexec_fn=lambda: os.close(1))
    assert done.returncode == Status.REJECTED
    assert done.stderr == "pyrnnx: the result cannot be written (standard output is closed)\n"


def test_closed_errors() -> None:
    for path, status in ((ONNX, Status.SUCCESS), ("missing.onnx", Status.REJECTED)):
        assert command("inspect", path, stderr=None).returncode == status


def test_an_interrupt_while_a_command_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pyrnnx.cli.commands.inspect.model_facts", interrupted)
    done = command("inspect", ONNX)
    assert (done.returncode, done.stdout, done.stderr) == (Status.INTERRUPTED, "", "")
