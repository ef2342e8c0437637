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

INTEGERS = (
    -(2**63), -(2**31), -2, -1, 0, 1, 2, 3, 5, 7, 64, 127, 255, 2**16, 2**28, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1
)  # fmt: skip
LARGEST = 100_000  # bytes or fields that a broken file may grow to


def flip(data: bytearray, rng: Rng, other: bytes) -> None:
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def overwrite(data: bytearray, rng: Rng, other: bytes) -> None:
    place, size = rng.randrange(len(data)), rng.choice((1, 2, 4, 8))
    data[place : place + size] = (rng.choice(INTEGERS) % 2 ** (8 * size)).to_bytes(size, "little")


def insert(data: bytearray, rng: Rng, other: bytes) -> None:
    place = rng.randrange(len(data))
    data[place:place] = rng.randbytes(rng.choice((1, 2, 4, 30)))


def delete(data: bytearray, rng: Rng, other: bytes) -> None:
    place = rng.randrange(len(data))
    del data[place : place + rng.choice((1, 2, 8, 100))]


def repeat(data: bytearray, rng: Rng, other: bytes) -> None:
    place, target = rng.randrange(len(data)), rng.randrange(len(data))
    data[target:target] = data[place : place + rng.choice((1, 8, 100))] * rng.choice((1, 2, 30))


def truncate(data: bytearray, rng: Rng, other: bytes) -> None:
    del data[rng.randrange(len(data)) :]


def splice(data: bytearray, rng: Rng, other: bytes) -> None:
    data[rng.randrange(len(data)) :] = other[rng.randrange(len(other) or 1) :]


def noise(data: bytearray, rng: Rng, other: bytes) -> None:
    keep = rng.choice((0, 0, 20, 80))
    data[keep:] = rng.randbytes(rng.randrange(200))


BYTES: tuple[Callable[[bytearray, Rng, bytes], None], ...] = (
    flip, flip, overwrite, overwrite, insert, delete, repeat, truncate, splice, noise,
)  # fmt: skip


def broken_bytes(data: bytes, other: bytes, rng: Rng) -> bytes:
    """Some places of `data` altered; `other` is what it is spliced with."""
    result = bytearray(data)
    for _ in range(how_many(rng)):
        if 0 < len(result) < LARGEST:
            rng.choice(BYTES)(result, rng, other)
    return bytes(result)


def broken_numbers(data: bytes, rng: Rng) -> bytes:
    """Constants of the same size: mostly whole numbers where numbers of 8 bytes would stand, as of axes and shapes."""
    result = bytearray(data)
    for _ in range(how_many(rng)):
        size = rng.choice((1, 2, 4, 8, 8, 8))
        place = rng.randrange(0, len(result) - size + 1, size) if len(result) >= size else 0
        number = rng.choice(INTEGERS) if rng.random() < 0.5 else rng.randint(-3, 9)
        result[place : place + size] = (number % 2 ** (8 * size)).to_bytes(size, "little")[: len(result)]
    return bytes(result)


def how_many(rng: Rng) -> int:
    """Few: what is broken in many places is refused for the first of them."""
    return rng.choice((1, 1, 1, 2, 4))


OP_TYPES = tuple(sorted({schema.name for schema in get_all_schemas()}))
NAMES = {
    "op_type": OP_TYPES,
    "domain": ("", "ai.onnx", "com.microsoft", "ai.onnx.ml", "test"),
    "key": ("location", "offset", "length", "checksum"),
    "value": (*map(str, INTEGERS), "../weights.bin", "/dev/zero", "a\0b", "x" * 5000, ".", "weights.bin"),
}
TEXTS = ("", "X", "Y", "\0", "forward", "reverse", "bidirectional", "Relu", "Affine", "x" * 100_000, "\u0665")
NUMBERS = (float("nan"), float("inf"), -1.0, 0.0, 0.5, 1.0, 1e30)


def break_model(model: Any, other: Any, rng: Rng) -> None:
    """Some fields of an onnx.ModelProto altered; `other` lends messages to it."""
    for _ in range(how_many(rng)):
        messages = list(_walk(model))
        if len(messages) < LARGEST // 10:
            message = rng.choice(messages)
            field = rng.choice(message.DESCRIPTOR.fields)
            if rng.random() < 0.8 and message.ListFields():  # mostly what is there
                field = rng.choice(message.ListFields())[0]
            _break_field(message, field, messages, other, rng)


def _walk(message: Any, depth: int = 0) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None and depth < 50:
            for inner in value if _is_repeated(value) else [value]:
                yield from _walk(inner, depth + 1)


def _is_repeated(value: Any) -> bool:
    return isinstance(value, MutableSequence)


def _break_field(message: Any, field: Any, messages: list[Any], other: Any, rng: Rng) -> None:
    value = getattr(message, field.name)
    if rng.random() < 0.05:
        message.ClearField(field.name)
    elif field.message_type is None:
        if not _is_repeated(value):
            setattr(message, field.name, _scalar(message, field, messages, rng))
        else:
            _break_sequence(value, lambda: _scalar(message, field, messages, rng), rng)
    else:
        pool = [one for one in (*messages, *_walk(other)) if one.DESCRIPTOR is field.message_type]
        lent = field.message_type._concrete_class()
        if pool and rng.random() < 0.9:  # it may hold the message that it comes to: a graph in itself
            lent.CopyFrom(rng.choice(pool))
        if _is_repeated(value):
            _break_sequence(value, lambda: lent, rng)
        else:
            value.CopyFrom(lent)


def _break_sequence(values: Any, make: Callable[[], Any], rng: Rng) -> None:
    place = rng.randrange(len(values) + 1)
    choice = rng.random()
    if choice < 0.4 and place < len(values):
        new = [*values[:place], make(), *values[place + 1 :]]
    elif choice < 0.6 and place < len(values):
        new = [*values[:place], *values[place + 1 :]]
    elif choice < 0.75:
        new = [*values]
        rng.shuffle(new)
    elif choice < 0.85 and place < len(values):
        new = [*values, *([values[place]] * rng.choice((1, 2, 70)))]
    else:
        new = [*values[:place], make(), *values[place:]]
    copies = [
        type(one).FromString(one.SerializePartialToString()) if hasattr(one, "DESCRIPTOR") else one for one in new
    ]
    del values[:]
    values.extend(copies)


def _scalar(message: Any, field: Any, messages: list[Any], rng: Rng) -> Any:
    """A value of the field's type: one that means something, or that stands in another message."""
    kind = field.cpp_type
    if field.type == field.TYPE_BYTES:
        return _data(getattr(message, field.name), rng)
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


def _data(value: Any, rng: Rng) -> bytes:
    data = value if isinstance(value, bytes) else rng.choice([*value, b""])
    text = rng.choice(TEXTS).encode()
    return rng.choice((text, broken_bytes(data, text, rng), broken_numbers(data, rng), broken_numbers(data, rng)))


def _text(field: str, messages: list[Any], rng: Rng) -> str:
    if field in NAMES and rng.random() < 0.8:
        return rng.choice(NAMES[field])
    found = [value for key, value in rng.choice(messages).ListFields() if key.type == key.TYPE_STRING]
    texts = [text for value in found for text in ([value] if isinstance(value, str) else value)]
    return rng.choice(texts if texts and rng.random() < 0.8 else TEXTS)


def broken_model(data: bytes, other: bytes, rng: Rng) -> bytes:
    """An ONNX file with some fields altered."""
    model, lender = onnx.ModelProto.FromString(data), onnx.ModelProto.FromString(other)
    break_model(model, lender, rng)
    return bytes(model.SerializePartialToString())


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
Root = etree._Element


def _some(root: Root, rng: Rng, tag: str = "*", *, attributes: bool = False) -> Root:
    """Return an element below the root, mostly of the layer of an operation; the root if there is none.

    A wrong input, constant or output is mostly rejected in reading, which hides the rest.
    """
    operations = [layer for layer in root.iter("layer") if layer.get("type") not in ("Parameter", "Const", "Result")]
    for tops in [operations, [root]] if rng.random() < 0.7 else [[root]]:
        elements = [element for top in tops for element in top.iter(tag) if element is not root]
        if attributes:
            elements = [element for element in elements if element.attrib]
        if elements:
            return rng.choice(elements)
    return root


def set_attribute(root: Root, rng: Rng, other: Root) -> None:
    element = _some(root, rng, rng.choice(("data", "*")))
    element.set(str(rng.choice([*element.attrib, rng.choice(ATTRIBUTES)])), rng.choice(VALUES))


def nudge_number(root: Root, rng: Rng, other: Root) -> None:
    """Change a number in a dimension or attribute by one."""
    element = _some(root, rng, rng.choice(("dim", "*")))
    keys = [key for key in element.attrib if _is_number(element.get(key))]
    if keys:
        key = rng.choice(keys)
        element.set(key, str(int(element.get(key, "")) + rng.choice((-1, 1))))
    elif _is_number(element.text):
        element.text = str(int(element.text or "") + rng.choice((-1, 1)))


def _is_number(text: str | None) -> bool:
    return text is not None and text.lstrip("-").isascii() and text.lstrip("-").isdecimal() and len(text) < 30


def delete_attribute(root: Root, rng: Rng, other: Root) -> None:
    element = _some(root, rng, attributes=True)
    if element.attrib:
        del element.attrib[rng.choice(list(element.attrib))]


def borrow_attribute(root: Root, rng: Rng, other: Root) -> None:
    """Copy the value of the same attribute of an element elsewhere, also of another model."""
    element = _some(root, rng, attributes=True)
    if element.attrib:
        key = str(rng.choice(list(element.attrib)))
        values = [str(peer.get(key)) for tree in (root, other) for peer in tree.iter(element.tag) if key in peer.attrib]
        element.set(key, rng.choice(values or VALUES))


def set_text(root: Root, rng: Rng, other: Root) -> None:
    _some(root, rng, "dim").text = rng.choice(VALUES)


def delete_element(root: Root, rng: Rng, other: Root) -> None:
    element = _some(root, rng)
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def duplicate_element(root: Root, rng: Rng, other: Root) -> None:
    element = _some(root, rng)
    if element is not root:
        for _ in range(rng.choice((1, 1, 2, 70))):
            element.addnext(_copy(element))


def move_element(root: Root, rng: Rng, other: Root) -> None:
    element, parent = _some(root, rng), _some(root, rng)
    if element not in parent.iterancestors() and element is not parent:
        parent.append(element)


def borrow_element(root: Root, rng: Rng, other: Root) -> None:
    """Replace an element by one of another model with the same tag."""
    element = _some(root, rng)
    parent, lent = element.getparent(), list(other.iter(element.tag))
    if parent is not None and lent:
        parent.replace(element, _copy(rng.choice(lent)))


def _copy(element: Root) -> Root:
    return etree.fromstring(etree.tostring(element, with_tail=False))


ELEMENTS: tuple[Callable[[Root, Rng, Root], None], ...] = (
    set_attribute, set_attribute, set_attribute, nudge_number, nudge_number, delete_attribute, borrow_attribute,
    borrow_attribute, set_text, delete_element, duplicate_element, move_element, borrow_element,
)  # fmt: skip


def broken_xml(data: bytes, other: bytes, rng: Rng) -> bytes:
    """Return an XML file with some elements or attributes altered."""
    root, lender = etree.fromstring(data), etree.fromstring(other)
    for _ in range(how_many(rng)):
        rng.choice(ELEMENTS)(root, rng, lender)
    return etree.tostring(root)
