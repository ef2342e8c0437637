"""What `pyrnnx convert` tells of a file of weights: what it leaves out, and what is not in it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from pyrnnx.errors import printable, shortened, shown
from pyrnnx.stack import Stack

LISTED = 5  # names that a warning lists


def left_out(path: str, layer: str | None, stack: Stack) -> list[str]:
    """What else the file of a stack holds: layers of Keras, or names of modules of PyTorch.

    Parameters
    ----------
    path : str
        Of weights of PyTorch, or of a .keras model.
    layer : str or None
        With which it was read.
    stack : Stack
        What was read of it.

    Raises
    ------
    PyrnnxError
        As of reading the file.
    """
    return _of_keras(path, layer) if _is_of_keras(path) else _of_torch(path, stack)


def remarks(path: str, stack: Stack, others: Sequence[str], nonlinearity: str | None) -> list[str]:
    """What `left_out` found, and what a file does not say, a sentence each."""
    found = [f"only {stack.label} is written; left out: {_listed(others)}"] if others else []
    if not _is_of_keras(path) and nonlinearity is None and stack.layers[0].op.cell == "RNN":
        found.append("weights of an RNN of PyTorch do not say its nonlinearity; tanh is taken (--nonlinearity)")
    return found


def _is_of_keras(path: str) -> bool:
    return Path(path).suffix.lower() == ".keras"


def _of_keras(path: str, layer: str | None) -> list[str]:
    """Layers, but for those that compute nothing when a model runs."""
    from pyrnnx.frontends.keras.file import other_layers

    return [f"{class_name} {shown(name)}" for class_name, name in other_layers(path, layer)]


def _of_torch(path: str, stack: Stack) -> list[str]:
    """Modules, by the names of their arrays."""
    from pyrnnx.frontends.torch.files import open_arrays

    own = f"{stack.name}." if stack.name else ""
    with ExitStack() as closing:
        _, arrays = open_arrays(path, closing)
        others = [name for name in arrays if not name.startswith(own)]
    return list(dict.fromkeys(shown(name.rpartition(".")[0] or name) for name in others))


def _listed(names: Sequence[str]) -> str:
    more = "" if len(names) <= LISTED else f" and {len(names) - LISTED} more"
    return printable(", ".join(map(shortened, names[:LISTED])) + more)
