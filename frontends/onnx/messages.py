"""What a protobuf message holds, at any depth: the texts and tensors of a model, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_HELD: dict[str, tuple[str, bool]] = {}  # what fields hold, by their names


def walk_messages(message: Any) -> Iterator[tuple[Any, list[Any]]]:
    """The message and all that it holds, at any depth, each with its texts: str, or bytes of what is no UTF-8.

    Tensors are not looked into, which would copy their data; of their texts there are name and doc_string.
    """
    left = [message]
    while left:
        one = left.pop()
        texts: list[Any] = []
        if type(one).__name__ == "TensorProto":
            texts += (one.name, one.doc_string)
        else:
            for field, value in one.ListFields():
                holds, is_repeated = _HELD.get(field.full_name) or _held(field, value)
                if holds:
                    found = left if holds == "messages" else texts
                    if is_repeated:
                        found.extend(value)
                    else:
                        found.append(value)
        yield one, texts


def _held(field: Any, value: Any) -> tuple[str, bool]:
    """Whether a field holds messages, texts or something else (""), and whether it holds many."""
    kinds = {field.TYPE_MESSAGE: "messages", field.TYPE_STRING: "texts"}
    is_repeated = hasattr(value, "append") or hasattr(value, "add")  # in one version or another
    _HELD[field.full_name] = kinds.get(field.type, ""), is_repeated
    return _HELD[field.full_name]


def tensors(message: Any) -> Iterator[Any]:
    """Every TensorProto of a model: initializers and attributes, of all graphs and functions."""
    return (one for one, _ in walk_messages(message) if type(one).__name__ == "TensorProto")
