"""Features that all commands share: help, statuses, errors in one line, JSON, completion."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command import process
from rows import each_row

import pyrnnx
from pyrnnx import config
from pyrnnx.cli import main
from pyrnnx.cli.app import COMMANDS
from pyrnnx.cli.output import INTERRUPTED, Result, plain_values

EXAMPLES = Path(__file__).parents[2] / "examples"
ONNX, XML = (str(EXAMPLES / f"small_rnn.{suffix}") for suffix in ("onnx", "xml"))
Capture = pytest.CaptureFixture[str]


def squeezed(text: str) -> str:
    return " ".join(text.split())


def test_help_lists_the_commands_and_the_statuses(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert max(map(len, captured.out.splitlines())) <= 80
    words = squeezed(captured.out)
    for name, line in COMMANDS.items():
        assert f" {name} {line}" in words
    assert "Exit status: 0 success" in words
    assert main([]) == 2, "a missing command is an error"
    assert capsys.readouterr().out == captured.out


@each_row("name", COMMANDS)
def test_every_command_has_its_line_and_an_example(name: str, capsys: Capture) -> None:
    function = getattr(importlib.import_module(f"pyrnnx.cli.commands.{name}"), name)
    assert function.__doc__.partition("\n\n")[0] == COMMANDS[name]
    assert main([name, "--help"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert re.search(rf"Example: .*pyrnnx {name}", squeezed(shown))


PROCESSES = {
    "run": [ONNX, "--seed", "0"],
    "compare": [ONNX, XML],
    "convert": [ONNX, "{}/m.xml"],
    "bench": ["--op", "GRU", "--shape", "5,2,3,4", "--repeat", "5"],
}


@pytest.mark.e2e
@pytest.mark.parametrize("name", PROCESSES)
def test_a_process_of_its_own(name: str, tmp_path: Path) -> None:
    if name in ("bench", "convert"):  # the last warns where onnx's evaluator compares what was written
        pytest.importorskip("onnxruntime")
    done = process(name, *(word.replace("{}", str(tmp_path)) for word in PROCESSES[name]))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_config(capsys: Capture) -> None:
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


def test_version(capsys: Capture) -> None:
    for arguments in (["--version"], ["--version", "config"]):
        assert main(arguments) == 0
        assert capsys.readouterr() == (f"{pyrnnx.__version__}\n", "")


USAGE: dict[str, tuple[list[str], str]] = {
    "no command": (["frobnicate"], "No such command 'frobnicate'. (commands: inspect, run,"),
    "an unknown option": (["inspect", ONNX, "--jsno"], "inspect: No such option"),
    "a missing argument": (["compare", ONNX], "compare: Missing argument 'OTHER'. (Usage: pyrnnx compare [OPTIONS] "),
    "too many arguments": (["inspect", ONNX, XML], "inspect: Got unexpected extra argument"),
    "no number": (
        ["run", ONNX, "--seed", "x"],
        "run: Invalid value for '--seed': 'x'; expected an integer, 0 or above",
    ),
}


@each_row("debug", [[], ["--debug"]])
@each_row("name", USAGE)
def test_usage(name: str, debug: list[str], capsys: Capture) -> None:
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
def test_debug_shows_the_traceback(first: bool, capsys: Capture) -> None:
    arguments = ["inspect", "missing.onnx"]
    assert main(["--debug", *arguments] if first else [*arguments, "--debug"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1].startswith("pyrnnx: ONNX model: 'missing.onnx' cannot be read")


@each_row(
    ("error", "words"),
    [
        (MemoryError(), "pyrnnx: not enough memory\n"),
        (PermissionError(13, "Permission denied", "a\nb"), r"pyrnnx: 'a\nb': Permission denied" + "\n"),
        (ZeroDivisionError("oh"), "pyrnnx: an error in pyrnnx itself (ZeroDivisionError: oh); --debug shows where\n"),
        (ImportError("the package onnx is not installed"), "pyrnnx: the package onnx is not installed\n"),
        (pyrnnx.ArgumentError("x is 1", argument="as_json"), "pyrnnx: --json: x is 1\n"),
    ],
)
def test_other_errors_are_a_line(
    error: Exception, words: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr("pyrnnx.cli.commands.config.get_config", fail)
    assert main(["config"]) == 2
    assert capsys.readouterr() == ("", words)


@each_row("place", ["typer.core.TyperGroup.make_context", "pyrnnx.cli.commands.inspect.model_facts"])
def test_an_interrupt(place: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def interrupted(*given: object, **more: object) -> None:
        raise KeyboardInterrupt

    importlib.import_module("pyrnnx.cli.commands.inspect")
    monkeypatch.setattr(place, interrupted)
    assert main(["inspect", ONNX]) == INTERRUPTED
    assert capsys.readouterr() == ("", "")


def test_without_its_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "pyrnnx.cli.app", raising=False)
    assert main(["config"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("pyrnnx: the command needs the package typer; ")


def test_values_of_json() -> None:
    given: dict[Any, Any] = {
        "a": [np.float32(0.5), float("nan"), -np.inf],
        "b": (np.arange(2), None, True),
        3: {"c": "\x1b\udcff"},
    }
    text = Result(given).as_json()
    assert text.isascii()
    assert json.loads(text) == {"a": [0.5, "nan", "-inf"], "b": [[0, 1], None, True], "3": {"c": "\x1b\udcff"}}
    with pytest.raises(TypeError, match="JSON cannot express a object"):
        plain_values([object()])


COMPLETED = {
    "commands": (["pyrnnx", "in"], ["inspect"]),
    "cells": (["pyrnnx", "bench", "--op", ""], ["LSTM", "GRU", "RNN"]),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.e2e) for name in COMPLETED])
def test_completion(name: str) -> None:
    words, expected = COMPLETED[name]
    env = {"_PYRNNX_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = process(env=env)
    assert (done.returncode, done.stdout.split()) == (0, expected)
