"""Ways to break a file: its bytes, the fields of an ONNX model, the elements and attributes of an IR.

Every function takes its choices from `rng` alone, so that the same seed breaks a file in the same way.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, MutableSequence
from typing import Any

import onnx
from lxml import etree
from onnx.defs import get_all_schemas

Rng = random.Random
Root = etree._Element

INTEGERS = (
    -(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 5, 7, 64, 127, 255, 2**16, 2**28, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1
)  # fmt: skip
LARGEST = 100_000  # bytes or fields that a broken file may grow to


def how_many(rng: Rng) -> int:
    """Few: what is broken in many places is refused for the first of them."""
    return rng.choice((1, 1, 1, 2, 4))


def broken_bytes(data: bytes, other: bytes, rng: Rng) -> bytes:
    """Some places of `data` altered; `other` is what it is spliced with."""
    result = bytearray(data)
    for _ in range(how_many(rng)):
        if 0 < len(result) < LARGEST:
            _break_bytes(result, other, rng)
    return bytes(result)


def _break_bytes(data: bytearray, other: bytes, rng: Rng) -> None:
    place, size = rng.randrange(len(data)), rng.choice((1, 2, 4, 8, 100))
    match rng.choice(("flip", "flip", "number", "number", "insert", "delete", "repeat", "truncate", "splice")):
        case "flip":
            data[place] ^= 1 << rng.randrange(8)
        case "number":
            size = min(size, 8)
            data[place : place + size] = (rng.choice(INTEGERS) % 2 ** (8 * size)).to_bytes(size, "little")
        case "insert":
            data[place:place] = rng.randbytes(size)
        case "delete":
            del data[place : place + size]
        case "repeat":
            data[place:place] = data[place : place + size] * rng.choice((1, 2, 30))
        case "truncate":
            del data[place:]
        case "splice":
            data[place:] = other[rng.randrange(len(other) or 1) :]


def broken_numbers(data: bytes, rng: Rng) -> bytes:
    """Constants of the same size: mostly whole numbers where numbers of 8 bytes would stand, as of axes and shapes."""
    result = bytearray(data)
    for _ in range(how_many(rng)):
        size = rng.choice((1, 2, 4, 8, 8, 8))
        place = rng.randrange(0, len(result) - size + 1, size) if len(result) >= size else 0
        number = rng.choice(INTEGERS) if rng.random() < 0.5 else rng.randint(-3, 9)
        result[place : place + size] = (number % 2 ** (8 * size)).to_bytes(size, "little")[: len(result)]
    return bytes(result)


NAMES = {
    "op_type": tuple(sorted({schema.name for schema in get_all_schemas()})),
    "domain": ("", "ai.onnx", "com.microsoft", "ai.onnx.ml", "test"),
    "key": ("location", "offset", "length", "checksum"),
    "value": (*map(str, INTEGERS), "../weights.bin", "/dev/zero", "a\0b", "x" * 5000, ".", "weights.bin"),
}
TEXTS = ("", "X", "Y", "\0", "forward", "reverse", "bidirectional", "Relu", "Affine", "x" * 100_000, "\u0665")
NUMBERS = (float("nan"), float("inf"), -1.0, 0.0, 0.5, 1.0, 1e30)


def broken_model(data: bytes, other: bytes, rng: Rng) -> bytes:
    """An ONNX file with some fields altered; the other lends messages."""
    model, lender = onnx.ModelProto.FromString(data), onnx.ModelProto.FromString(other)
    for _ in range(how_many(rng)):
        messages = list(_walk(model))
        if len(messages) < LARGEST // 10:
            message = rng.choice(messages)
            field = rng.choice(message.DESCRIPTOR.fields)
            if rng.random() < 0.8 and message.ListFields():  # mostly what is there
                field = rng.choice(message.ListFields())[0]
            _break_field(message, field, messages, lender, rng)
    return bytes(model.SerializePartialToString())


def _walk(message: Any, depth: int = 0) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None and depth < 50:
            for inner in value if isinstance(value, MutableSequence) else [value]:
                yield from _walk(inner, depth + 1)


def _break_field(message: Any, field: Any, messages: list[Any], other: Any, rng: Rng) -> None:
    value = getattr(message, field.name)

    def new() -> Any:
        if field.message_type is None:
            return _scalar(message, field, messages, rng)
        lent = field.message_type._concrete_class()
        pool = [inner for inner in (*messages, *_walk(other)) if inner.DESCRIPTOR is field.message_type]
        if pool and rng.random() < 0.9:  # it may hold the message that it comes to: a graph in itself
            lent.CopyFrom(rng.choice(pool))
        return lent

    if rng.random() < 0.05:
        message.ClearField(field.name)
    elif isinstance(value, MutableSequence):
        _break_sequence(value, new, rng)
    elif field.message_type is None:
        setattr(message, field.name, new())
    else:
        value.CopyFrom(new())


def _break_sequence(values: Any, make: Callable[[], Any], rng: Rng) -> None:
    place, old = rng.randrange(len(values) + 1), list(values)
    match rng.choice(("replace", "replace", "delete", "shuffle", "repeat", "insert")):
        case "replace":
            old[place : place + 1] = [make()]
        case "delete":
            del old[place : place + 1]
        case "shuffle":
            rng.shuffle(old)
        case "repeat":
            old += old[place : place + 1] * rng.choice((1, 2, 70))
        case "insert":
            old.insert(place, make())
    copies = [type(a).FromString(a.SerializePartialToString()) if hasattr(a, "DESCRIPTOR") else a for a in old]
    del values[:]
    values.extend(copies)


def _scalar(message: Any, field: Any, messages: list[Any], rng: Rng) -> Any:
    """A value of the field's type: one that means something, or that stands in another message."""
    kind = field.cpp_type
    if field.type == field.TYPE_BYTES:
        value, text = getattr(message, field.name), rng.choice(TEXTS).encode()
        data = value if isinstance(value, bytes) else rng.choice([*value, b""])
        return rng.choice((text, broken_bytes(data, text, rng), broken_numbers(data, rng), broken_numbers(data, rng)))
    if kind == field.CPPTYPE_STRING:
        return _text(field.name, messages, rng)
    if kind == field.CPPTYPE_ENUM:
        return rng.choice(list(field.enum_type.values_by_number))
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return rng.choice(NUMBERS)
    number = rng.choice(INTEGERS) if rng.random() < 0.7 else rng.randint(-1, 25)  # opsets, ranks, element types
    bits = 31 if kind in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32) else 63
    low = 0 if kind in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64) else -(2**bits)
    return max(low, min(number, 2**bits - 1))


def _text(field: str, messages: list[Any], rng: Rng) -> str:
    if field in NAMES and rng.random() < 0.8:
        return rng.choice(NAMES[field])
    stored = [value for key, value in rng.choice(messages).ListFields() if key.type == key.TYPE_STRING]
    texts = [text for value in stored for text in ([value] if isinstance(value, str) else value)]
    return rng.choice(texts if texts and rng.random() < 0.8 else TEXTS)


VALUES = (
    "", " ", "0", "1", "-1", "7", "8", "9", "10", "1.5", "1e9", "nan", "inf", "true", "?", "...", "1..", "..8", "3,4",
    "0,0", "-1,-1", "1,2,3,4,5,6,7,8,9", "f32", "f16", "i4", "u1", "i64", "string", "FP32", "I64", "LSTMSequence",
    "Const", "Parameter", "Result", "opset1", "opset5", "opset8", "opset15", "extension", "bidirectional",
    "sigmoid,tanh", "same_upper", "ceil", "none", "9" * 30, "9" * 400, str(2**31), str(2**40), str(2**62), str(2**63),
    str(2**64), f"0,{2**62},{2**62}", ",".join(["1"] * 70), "x" * 100_000, "\u0665", "\\,", "\n",
)  # fmt: skip
ATTRIBUTES = (
    "id", "name", "type", "version", "shape", "element_type", "offset", "size", "precision", "names", "hidden_size",
)  # fmt: skip
CHANGES = (
    "set", "set", "set", "number", "number", "text", "borrow", "borrow", "drop", "delete", "repeat", "move", "swap",
)  # fmt: skip
TAGS = {"set": ("data", "*"), "number": ("dim", "*"), "text": ("dim",)}  # of the elements that a change alters


def broken_xml(data: bytes, other: bytes, rng: Rng) -> bytes:
    """Return an XML file with some elements or attributes altered; the other lends elements and values."""
    root, lender = etree.fromstring(data), etree.fromstring(other)
    for _ in range(how_many(rng)):
        _break_element(root, lender, rng)
    return etree.tostring(root)


def _break_element(root: Root, other: Root, rng: Rng) -> None:
    change = rng.choice(CHANGES)
    element = _some(root, rng, rng.choice(TAGS.get(change, ("*",))))
    parent, keys = element.getparent(), list(element.attrib)
    match change:
        case "set":
            element.set(str(rng.choice([*keys, rng.choice(ATTRIBUTES)])), rng.choice(VALUES))
        case "number":
            _nudge_number(element, rng)
        case "text":
            element.text = rng.choice(VALUES)
        case "borrow" if keys:  # of the same attribute elsewhere
            key = rng.choice(keys)
            peers = [*root.iter(element.tag), *other.iter(element.tag)]
            element.set(key, str(rng.choice([peer.get(key) for peer in peers if key in peer.attrib])))
        case "drop" if keys:
            del element.attrib[rng.choice(keys)]
        case "delete" if parent is not None:
            parent.remove(element)
        case "repeat" if parent is not None:
            for _ in range(rng.choice((1, 1, 2, 70))):
                element.addnext(_copy(element))
        case "move" if element not in (target := _some(root, rng, "*")).iterancestors() and element is not target:
            target.append(element)
        case "swap" if parent is not None and (lent := list(other.iter(element.tag))):
            parent.replace(element, _copy(rng.choice(lent)))


def _some(root: Root, rng: Rng, tag: str) -> Root:
    """Return an element below the root, mostly of the layer of an operation; the root if there is none.

    A wrong input, constant or output is mostly rejected in reading, which hides the rest.
    """
    operations = [layer for layer in root.iter("layer") if layer.get("type") not in ("Parameter", "Const", "Result")]
    for tops in [operations, [root]] if rng.random() < 0.7 else [[root]]:
        elements = [element for top in tops for element in top.iter(tag) if element is not root]
        if elements:
            return rng.choice(elements)
    return root


def _nudge_number(element: Root, rng: Rng) -> None:
    """Change a number in a dimension or attribute by one."""
    keys = [key for key, text in element.attrib.items() if _is_number(text)]
    if keys:
        key = rng.choice(keys)
        element.set(key, str(int(element.get(key, "")) + rng.choice((-1, 1))))
    elif _is_number(element.text):
        element.text = str(int(element.text or "") + rng.choice((-1, 1)))


def _is_number(text: str | bytes | None) -> bool:
    return isinstance(text, str) and text.lstrip("-").isascii() and text.lstrip("-").isdecimal() and len(text) < 30


def _copy(element: Root) -> Root:
    return etree.fromstring(etree.tostring(element, with_tail=False))
