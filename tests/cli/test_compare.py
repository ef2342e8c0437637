"""`pyrnnx compare`, in a process of its own: what it prints and writes, and its exit status."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from command import pyrnnx

from pyrnnx import compare

EXAMPLES = Path(__file__).parents[2] / "examples"
PAIR = [str(EXAMPLES / "small_rnn.onnx"), str(EXAMPLES / "small_rnn.xml")]
NASTY = "\x1b[31mrot\n\u202e"  # a colour, a line break, and right to left


def command(*arguments: str, **keywords: Any) -> subprocess.CompletedProcess[str]:
    """`pyrnnx compare` with these arguments, away from the sources."""
    return pyrnnx("compare", *arguments, **keywords)


def test_result() -> None:
    done = command(*PAIR, "--seed", "3")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{compare(PAIR[0], PAIR[1], seed=3)}\n"


REJECTED: dict[str, tuple[list[str], str]] = {
    "no such file": (["missing.onnx", PAIR[1]], "missing.onnx"),
    "second file": ([PAIR[0], "missing.xml"], "missing.xml"),
    "another suffix": (["model.pb", PAIR[1]], "expected .onnx or .xml"),
    "a folder": ([str(EXAMPLES), PAIR[1]], "examples"),
    "seed": ([*PAIR, "--seed", "-1"], "compare: seed is -1; expected an integer, 0 or above"),
    "a nasty name": ([f"{NASTY}.onnx", PAIR[1]], r"\x1b[31mrot\n\u202e.onnx"),
    "bytes that are no text": ([os.fsdecode(b"\xff.onnx"), PAIR[1]], r"\udcff.onnx"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_rejected(name: str) -> None:
    arguments, words = REJECTED[name]
    done = command(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert done.stderr.startswith("pyrnnx: ")
    assert done.stderr.count("\n") == 1
    assert done.stderr.removesuffix("\n").isprintable()


def test_usage() -> None:
    done = command(*PAIR, "--seed", "9" * 5000)
    assert done.returncode == 2
    assert "is no integer" in done.stderr
    assert len(done.stderr) < 1_000


def test_a_file_that_is_broken(tmp_path: Path) -> None:
    for name in ("broken.onnx", "broken.xml"):
        (tmp_path / name).write_bytes(b"<\x00\n" * 5)
        done = command(str(tmp_path / name), PAIR[1])
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


@pytest.fixture
def nasty(tmp_path: Path) -> str:
    """The model with a name that a terminal would obey."""
    model = onnx.load(PAIR[0])
    model.graph.node[0].name = NASTY
    model.graph.output[0].name = model.graph.node[0].output[0] = NASTY
    path = tmp_path / f"{NASTY}.onnx"
    onnx.save(model, path)
    return str(path)


@pytest.mark.parametrize("other", ["itself", "a layer"])
def test_names_are_shown_escaped(nasty: str, other: str) -> None:
    done = command(nasty, nasty if other == "itself" else PAIR[1])
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\x1b[31mrot\n\u202e" in done.stdout
    assert all(line.isprintable() for line in done.stdout.split("\n"))


def test_a_terminal_without_unicode(tmp_path: Path) -> None:
    path = tmp_path / "größe.xml"
    path.write_text(Path(PAIR[1]).read_text().replace("small_rnn", "größe"), encoding="utf-8")
    done = command(PAIR[0], str(path), env={"PYTHONIOENCODING": "ascii"})
    assert (done.returncode, done.stderr) == (0, "")
    assert r"'gr\xf6\xdfe'" in done.stdout
    done = command(PAIR[0], str(path.with_suffix(".pb")), env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 2
    assert r"gr\xf6\xdfe.pb" in done.stderr
    assert done.stderr.count("\n") == 1


def test_warnings_are_a_line(tmp_path: Path) -> None:
    path = tmp_path / "layer.xml"
    path.write_text(Path(PAIR[1]).read_text().replace("<data ", '<data strange="1" '))
    done = command(PAIR[0], str(path), env={"PYTHONWARNINGS": "default"})
    assert done.returncode == 0
    assert done.stderr.startswith("pyrnnx: warning: ")
    assert "strange" in done.stderr
    assert done.stderr.count("\n") == 1


posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes of POSIX")


@posix
def test_nobody_reads() -> None:
    """What `pyrnnx compare a b | head -1` does, when head has gone first."""
    read, write = os.pipe()
    os.close(read)
    done = command(*PAIR, stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="/dev/full of Linux")
def test_no_space() -> None:
    with open("/dev/full", "w") as full:
        done = command(*PAIR, stdout=full)
    assert done.returncode == 2
    assert done.stderr.startswith("pyrnnx: the result cannot be written (")
    assert done.stderr.count("\n") == 1


@posix
@pytest.mark.parametrize("closed", [1, 2], ids=["output", "errors"])
def test_closed_streams(closed: int) -> None:
    def close() -> None:
        os.close(closed)

    for arguments, status in ((PAIR, 0), (["missing.onnx", PAIR[1]], 2)):
        done = command(*arguments, preexec_fn=close)
        assert done.returncode == status
        assert "Traceback" not in done.stderr


INTERRUPT = """
import os, signal, sys, time
import pyrnnx.cli
import pyrnnx.comparison

def compare(*arguments, **keywords):
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
pyrnnx.comparison.compare = compare
sys.exit(pyrnnx.cli.main(["compare", "a", "b"]))
"""


@posix
def test_interrupt() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPT], capture_output=True, cwd="/", check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, b"", b"")
