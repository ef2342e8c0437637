"""Uses of files that are no models, and of command lines: all that a caller can do with one, step by step."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import command
import numpy as np
from fuzz.small_files import Seed, files_of_commands

import pyrnnx
from pyrnnx import TensorInfo
from pyrnnx.cli.app import COMMANDS
from pyrnnx.cli.arrays import read_samples
from pyrnnx.errors import ArgumentError
from pyrnnx.frontends import keras, torch
from pyrnnx.frontends.keras import file as keras_file
from pyrnnx.frontends.keras import h5, process
from pyrnnx.scoring.sources import open_source
from pyrnnx.scoring.sources.base import Bad

Step = Callable[..., Any]
SUFFIXES = {"safetensors": "safetensors", "pt": "pt", "keras": "keras", "npy": "npy", "wav": "wav", "command": "txt"}
REJECTED = 2
APART = 0.02  # of the .keras files whose HDF5 is altered: a process for each takes 0.3 s
FORBIDDEN = ("/", "..", "~", "--debug", "--repeat", "bench", "conformance")  # elsewhere, or slow on purpose


COMMAND_MODULES = [f"pyrnnx.cli.commands.{name}" for name in COMMANDS]
NEEDED = {
    "safetensors": ("safetensors",),
    "pt": ("torch",),
    "keras": ("h5py",),
    "command": ("rich.console", "typer", "safetensors", "torch", "matplotlib.figure", *COMMAND_MODULES),
}


class Broken(Exception):  # noqa: N818  # it is no error of what is tested, but what is found
    """A promise that is broken without an exception, or by one that is a PyrnnxError."""


def prepare(kind: str) -> None:
    """Import what uses of this kind import and is installed, once for all processes."""
    for name in NEEDED.get(kind, ()):
        if find_spec(name.partition(".")[0]) is not None:
            import_module(name)
    if kind == "command":
        files_of_commands()


def use_state_dict(step: Step, path: Path, original: Seed, rng: random.Random) -> None:
    """Read a .safetensors or .pt file as a stack."""
    options: dict[str, Any] = {"prefix": "" if rng.random() < 0.9 else "lstm.", "batch_first": rng.random() < 0.2}
    if rng.random() > 0.7:
        options["operator"] = rng.choice(("RNN", "GRU", "LSTM"))
    _use_stack(step, step("read", lambda: torch.from_state_dict(path, **options)), rng)


def use_keras(step: Step, path: Path, original: Seed, rng: random.Random) -> None:
    """Read a .keras file as a stack, mostly with HDF5 in this process, which takes it only if it is not altered."""
    known = original.data

    def read(label: str, contents: bytes, *more: Any) -> Any:
        if contents in known:
            return h5.read_weights(label, contents, *more)
        if rng.random() < APART:
            return process.read_weights(label, contents, *more)
        raise ArgumentError("altered weights are not read this time")

    with patch.object(keras_file, "read_weights", read):
        _use_stack(step, step("read", keras.from_file, path), rng)


def _use_stack(step: Step, stack: pyrnnx.Stack | None, rng: random.Random) -> None:
    if stack is None:
        return
    step("list", repr, stack)
    X = np.full((2, 3, stack.input_size), 0.5, stack.dtype)
    step("run", stack.run, X)
    if rng.random() < 0.2:
        step("stream", lambda: stack.stream(3).push(X))


def use_source(step: Step, path: Path, original: Seed, rng: random.Random) -> None:
    """Read an array or a sound as `score` does, and a sound as the command does."""
    kind = path.suffix[1:]
    options: dict[str, Any] = {"channels": rng.choice((None, "mean", 0, 1))} if kind == "wav" else {}
    source = open_source(path, **options)
    items = step("list", source.items)
    if items is not None:
        good = [place for index, place in enumerate(items.places) if index not in items.bad]
        reasons = [Bad(reason) for reason in items.bad.values()]
        for result in [*reasons, *(step("read", lambda: list(source.read(good))) or ())]:
            if isinstance(result, Bad) and not 0 < len(result.reason) < 4_200:
                raise Broken(f"a reason of {len(result.reason)} characters")
    if kind == "wav":
        step("samples", read_samples, "run", str(path), TensorInfo("X", "float32", (None,)))


def use_line(step: Step, path: Path, original: Seed, rng: random.Random) -> None:
    """Run a command line in a folder with the files that it names."""
    words = path.read_bytes().decode("utf-8", "surrogateescape").split("\0")
    if any(part in word for word in words for part in FORBIDDEN):
        return
    folder = path.parent / "files"
    folder.mkdir(exist_ok=True)
    _restore(folder)
    done = step("call", lambda: command.pyrnnx(*words, cwd=folder))
    if done is None or done.returncode == REJECTED:
        text = "" if done is None else done.stderr
        if not text and "help" not in " ".join(words) and words != [""]:
            raise Broken("rejected without a message")
        if "an error in pyrnnx itself" in text or "Traceback" in text:
            raise Broken(f"{text.partition('itself')[2][:80].strip()} (words {words})")
        if "not enough memory" in text:
            raise Broken(f"memory exhausted (words {words})")
    elif done.returncode not in (0, 1):
        raise Broken(f"status {done.returncode} (words {words})")


def _restore(folder: Path) -> None:
    """Write the files that command lines name, unless they are as they were: their time is 0."""
    files = files_of_commands()
    missing = set(files)
    for path in folder.iterdir():
        if path.name in files and path.is_file() and not path.stat().st_mtime_ns:
            missing.remove(path.name)
        elif path.is_file():
            path.unlink()
    for name in missing:
        (folder / name).write_bytes(files[name])
        os.utime(folder / name, ns=(0, 0))


USES: dict[str, Callable[[Step, Path, Seed, random.Random], None]] = {
    "safetensors": use_state_dict, "pt": use_state_dict, "keras": use_keras, "npy": use_source, "wav": use_source,
    "command": use_line,
}  # fmt: skip


def use(step: Step, kind: str, file: Seed, original: Seed, folder: Path, rng: random.Random) -> None:
    """Write a file, and use it."""
    suffix = "npz" if original.name.startswith("x.npz") else SUFFIXES[kind]
    path = folder / f"file.{suffix}"
    path.unlink(missing_ok=True)  # the old one may be mapped still
    path.write_bytes(file.data)
    USES[kind](step, path, original, rng)
