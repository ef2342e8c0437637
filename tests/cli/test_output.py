"""Destinations of a result: terminals, pipes, and closed streams."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from command import in_terminal
from command import pyrnnx as command
from rows import each_row

from pyrnnx.cli.output import CLOSED_PIPE, REJECTED

EXAMPLES = Path(__file__).parents[2] / "examples"
ONNX = str(EXAMPLES / "small_rnn.onnx")
posix = pytest.mark.skipif(os.name != "posix", reason="streams of POSIX")


def test_a_terminal_has_colours_and_80_columns() -> None:
    status, text = in_terminal("inspect", ONNX)
    assert status == 0
    assert "\x1b[1m" in text
    plain = re.sub("\x1b\\[[0-9;]*m", "", text)
    assert max(map(len, plain.splitlines())) <= 80
    assert "small_rnn" in plain


@each_row("encoding", ["utf-8", "ascii"])
def test_a_pipe_is_plain(encoding: str) -> None:
    done = command("inspect", ONNX, encoding=encoding)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii() == (encoding == "ascii")
    assert "\x1b" not in done.stdout
    assert "\\u" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert not any(line.endswith(" ") for line in done.stdout.splitlines())


def test_what_cannot_be_written_is_said() -> None:
    done = command("inspect", ONNX, stdout=None)
    assert done.returncode == REJECTED
    assert done.stderr == "pyrnnx: the result cannot be written (standard output is closed)\n"
    if Path("/dev/full").exists():  # Linux
        with open("/dev/full", "w") as full:
            done = command("inspect", ONNX, stdout=full)
        assert done.returncode == REJECTED
        assert done.stderr.startswith("pyrnnx: the result cannot be written (No space left on device)")
        assert done.stderr.count("\n") == 1


@posix
def test_nobody_reads() -> None:
    """`pyrnnx inspect model | head -1` ends quietly if head exits first."""
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = command("inspect", ONNX, stdout=pipe)
    assert (done.returncode, done.stderr) == (CLOSED_PIPE, "")


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_for_terminals(terminal: bool) -> None:
    arguments = ("bench", "--op", "GRU", "--shape", "5,2,3,4", "--against", "onnxruntime")
    text = in_terminal(*arguments)[1] if terminal else command(*arguments).stderr
    assert ("bench: GRU" in text) == terminal
