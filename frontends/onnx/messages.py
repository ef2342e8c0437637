"""Protobuf messages: copies, and the texts and tensors at any depth."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, TensorProto

Message = TypeVar("Message")
_FIELDS: dict[str, tuple[str, bool]] = {}  # kinds of fields, by their full names


def copied(message: Message) -> Message:
    """Return a deep copy of a protobuf message."""
    copy: Any = type(message)()
    copy.CopyFrom(message)
    return copy  # type: ignore[no-any-return]


def copy_fields(old: Any, new: Any, left_out: Collection[str]) -> None:
    """Copy the fields of a protobuf message to an empty one."""
    for descriptor, value in old.ListFields():
        if descriptor.name in left_out:
            continue
        if isinstance(value, (int, float, str, bytes)):
            setattr(new, descriptor.name, value)
        elif hasattr(value, "extend"):
            getattr(new, descriptor.name).extend(value)
        else:
            getattr(new, descriptor.name).CopyFrom(value)


def walk_messages(message: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the message and all messages in it, each with its texts: str, or bytes that are not UTF-8.

    Of tensors, the texts are name and doc_string: listing their fields would copy the data.
    """
    left = [message]
    while left:
        part = left.pop()
        texts: list[Any] = []
        if type(part).__name__ == "TensorProto":
            texts += (part.name, part.doc_string)
        else:
            for field, value in part.ListFields():
                kind, is_repeated = _FIELDS.get(field.full_name) or _kind_of(field, value)
                if kind:
                    items = left if kind == "messages" else texts
                    if is_repeated:
                        items.extend(value)
                    else:
                        items.append(value)
        yield part, texts


def _kind_of(field: Any, value: Any) -> tuple[str, bool]:
    """Return whether a field has "messages", "texts" or other values (""), and whether it is repeated."""
    kinds = {field.TYPE_MESSAGE: "messages", field.TYPE_STRING: "texts"}
    is_repeated = hasattr(value, "append") or hasattr(value, "add")  # by version of protobuf
    _FIELDS[field.full_name] = kinds.get(field.type, ""), is_repeated
    return _FIELDS[field.full_name]


def tensors(message: ModelProto | FunctionProto) -> Iterator[TensorProto]:
    """Yield every TensorProto of a model: initializers and attributes, in all graphs and functions."""
    return (part for part, _ in walk_messages(message) if type(part).__name__ == "TensorProto")
