"""Protobuf messages: copies, and the tensors at any depth."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from onnx import FunctionProto, ModelProto, TensorProto

Message = TypeVar("Message")


def copied(message: Message) -> Message:
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


def tensors(message: ModelProto | FunctionProto) -> Iterator[TensorProto]:
    """Yield every TensorProto of a model: initializers and attributes, in all graphs and functions."""
    left: list[Any] = [message]
    while left:
        part = left.pop()
        if type(part).__name__ == "TensorProto":
            yield part
            continue
        for field, value in part.ListFields():
            if field.type == field.TYPE_MESSAGE:
                left += value if hasattr(value, "extend") else [value]
