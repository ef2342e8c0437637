"""What a protobuf message holds, at any depth: the texts and tensors of a model, wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def walk_messages(message: Any) -> Iterator[tuple[Any, list[Any]]]:
    """The message and all that it holds, at any depth, each with its texts: str, or bytes of what is no UTF-8.

    Tensors are not looked into, which would copy their data; of their texts there are name and doc_string.
    """
    left = [message]
    while left:
        one = left.pop()
        texts: list[Any] = []
        if one.DESCRIPTOR.name == "TensorProto":
            texts += (one.name, one.doc_string)
        else:
            for field, value in one.ListFields():
                if field.type not in (field.TYPE_MESSAGE, field.TYPE_STRING):
                    continue
                found = left if field.type == field.TYPE_MESSAGE else texts
                if hasattr(value, "append") or hasattr(value, "add"):  # repeated, in one version or another
                    found.extend(value)
                else:
                    found.append(value)
        yield one, texts


def tensors(message: Any) -> Iterator[Any]:
    """Every TensorProto of a model: initializers and attributes, of all graphs and functions."""
    return (one for one, _ in walk_messages(message) if one.DESCRIPTOR.name == "TensorProto")
