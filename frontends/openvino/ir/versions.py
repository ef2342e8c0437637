"""Versions of the format: which are read, and errors and warnings for others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lxml import etree

from pyrnnx.errors import FormatError, UnsupportedError, shown

from .numbers import integer

VERSIONS = (10, 11)
_FIRST, _NEWEST = 2, VERSIONS[-1]  # versions that OpenVINO has written
_HOW_TO_CONVERT = (
    "Only OpenVINO 2020.4 and earlier run it: convert the original model again, with openvino.convert_model, or with "
    "the Model Optimizer of OpenVINO 2020.1 or later"
)


class _Known(NamedTuple):
    attributes: frozenset[str]
    children: Mapping[str, str]  # rows of the table by tag


def _row(attributes: str, children: str = "", **rows: str) -> _Known:
    return _Known(frozenset(attributes.split()), {tag: tag for tag in children.split()} | rows)


_ENDS = "from-layer from-port to-layer to-port"
_ENTRY = _row("external_port_id internal_layer_id internal_port_id axis purpose start end stride part_size")
# Attributes and children of version 11; the content of elements without a row is not checked.
_ELEMENTS: Mapping[str, _Known] = {
    "net": _row("name version", "layers edges rt_info meta_data"),
    "layers": _row("", "layer"),
    "layer": _row(
        "id name type version output_names",
        "data rt_info back_edges",
        **dict.fromkeys(("input", "output"), "ports"),
        **dict.fromkeys(("body", "then_body", "else_body"), "net"),
        **dict.fromkeys(("port_map", "then_port_map", "else_port_map"), "port_map"),
    ),
    "ports": _row("", "port"),
    "port": _row("id precision names", "dim rt_info"),
    "dim": _row(""),
    "edges": _row("", "edge"),
    "back_edges": _row("", "edge"),
    "edge": _row(_ENDS),
    "port_map": _row("", input="entry", output="entry"),
    "entry": _ENTRY,
}


def read_version(what: str, root: etree._Element) -> int:
    """Return the version of a `<net>`, 10 or above.

    Raises
    ------
    FormatError
        The version is missing.
    UnsupportedError
        The version is below 10, or newer with an element or attribute that 11 lacks.
    """
    text = root.get("version")
    if text is None:
        raise FormatError(f"{what}: <net> has no version; expected 10 or 11")
    try:
        version = integer(text)
    except ValueError:
        version = 0
    if version < VERSIONS[0]:
        hint = f". {_HOW_TO_CONVERT}" if version >= _FIRST else ""
        raise UnsupportedError(f"{what}: IR version is {shown(text)}; expected 10 or 11{hint}")
    if version > _NEWEST:
        _check(what, version, root)
    return version


def newer(version: int) -> list[str]:
    """Return a warning if the version is newer than any known."""
    if version <= _NEWEST:
        return []
    return [f"IR version is {shown(version)}, newer than any known: it is read as version {_NEWEST}"]


def _check(what: str, version: int, root: etree._Element) -> None:
    queue: list[tuple[etree._Element, str]] = [(root, "net")]
    while queue:
        element, row = queue.pop()
        if row not in _ELEMENTS:
            continue
        known = _ELEMENTS[row]
        unknown = [f"attribute {shown(str(name))}" for name in element.attrib if name not in known.attributes]
        for child in element.iterchildren(etree.Element):
            tag = str(child.tag)
            if tag in known.children:
                queue.append((child, known.children[tag]))
            else:
                unknown.append(f"<{shown(tag)}>")
        if unknown:
            raise UnsupportedError(
                f"{what}: IR version is {shown(version)}, newer than any known, and its <{element.tag}> has "
                f"{unknown[0]}; expected elements and attributes of version {_NEWEST}"
            )
