"""Completion in a shell: the scripts and their suggestions."""

from __future__ import annotations

from pathlib import Path

from command import process
from command import pyrnnx as command
from rows import each_row

EXAMPLES = Path(__file__).parents[2] / "examples"
ONNX, XML, IR = (str(EXAMPLES / name) for name in ("small_rnn.onnx", "small_rnn.xml", "small_model.xml"))


@each_row("shell", ["bash", "zsh", "fish"])
def test_completion_is_shown(shell: str) -> None:
    env = {"_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}  # else that of the parent process is taken
    done = process("--show-completion", shell, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_PYRNNX_COMPLETE" in done.stdout


COMPLETED = {
    "commands": (["pyrnnx", "in"], ["inspect"]),
    "runtimes": (["pyrnnx", "conformance", "onnxr"], ["onnxruntime"]),
    "cells": (["pyrnnx", "bench", "--op", ""], ["LSTM", "GRU", "RNN"]),
    "dtypes": (["pyrnnx", "bench", "--dtype", "float3"], ["float32"]),
    "peers": (["pyrnnx", "bench", "--against", "o"], ["onnxruntime", "openvino"]),
    "runtimes of models": (["pyrnnx", "check", "--against", ""], ["onnxruntime", "openvino"]),
    "models": (["pyrnnx", "inspect", f"{EXAMPLES}/"], [IR, ONNX, XML]),
    "models to convert": (["pyrnnx", "convert", f"{EXAMPLES}/"], [f"{EXAMPLES}/small_model.bin", IR, ONNX, XML]),
    "a second model": (["pyrnnx", "compare", ONNX, f"{EXAMPLES}/"], [IR, ONNX, XML]),
    "the rest of a list": (["pyrnnx", "check", "--against", "onnxruntime,o"], ["onnxruntime,openvino"]),
}


def completed(words: list[str]) -> list[str]:
    env = {"_PYRNNX_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    done = command(env=env)
    assert done.returncode == 0
    return [word for word in done.stdout.split() if not word.endswith("__pycache__/")]


@each_row("name", COMPLETED)
def test_completion(name: str) -> None:
    words, expected = COMPLETED[name]
    assert completed(words) == expected
