"""Warnings of `pyrnnx convert` about a file of weights: ignored contents and missing facts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from pyrnnx.errors import printable, shortened, shown
from pyrnnx.stacks.stack import Stack

LISTED = 5  # names that a warning lists


def left_out(path: str, layer: str | None, stack: Stack) -> list[str]:
    """Return the names of layers (Keras) or modules (PyTorch) in the file of a stack that are not in the stack.

    Parameters
    ----------
    path : str
        Path of PyTorch weights or of a .keras model.
    layer : str or None
        Layer that was read.
    stack : Stack
        Result of reading the file.

    Raises
    ------
    PyrnnxError
        The file cannot be read.
    """
    return _of_keras(path, layer) if _is_of_keras(path) else _of_torch(path, stack)


def remarks(path: str, stack: Stack, others: Sequence[str], nonlinearity: str | None) -> list[str]:
    """Return sentences about the result `others` of `left_out`, and about facts that a file does not contain."""
    sentences = [f"only {stack.label} is written; left out: {_listed(others)}"] if others else []
    if not _is_of_keras(path) and nonlinearity is None and stack.layers[0].op.cell == "RNN":
        sentences.append("weights of an RNN of PyTorch do not contain its nonlinearity; using tanh (--nonlinearity)")
    return sentences


def _is_of_keras(path: str) -> bool:
    return Path(path).suffix.lower() == ".keras"


def _of_keras(path: str, layer: str | None) -> list[str]:
    """Return all other layers except those that compute nothing when a model runs."""
    from pyrnnx.frontends.keras.file import other_layers

    return [f"{class_name} {shown(name)}" for class_name, name in other_layers(path, layer)]


def _of_torch(path: str, stack: Stack) -> list[str]:
    """Return the names of other modules, derived from the names of their arrays."""
    from pyrnnx.frontends.torch.files import open_arrays

    own = f"{stack.name}." if stack.name else ""
    with ExitStack() as closing:
        _, arrays = open_arrays(path, closing)
        others = [name for name in arrays if not name.startswith(own)]
    return list(dict.fromkeys(shown(name.rpartition(".")[0] or name) for name in others))


def _listed(names: Sequence[str]) -> str:
    suffix = "" if len(names) <= LISTED else f" and {len(names) - LISTED} more"
    return printable(", ".join(map(shortened, names[:LISTED])) + suffix)
