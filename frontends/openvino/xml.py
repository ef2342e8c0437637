"""XML text to elements, with what XML can do beside carrying text switched off: no DTD, no entities, no network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lxml import etree

from pyrnnx.errors import ArgumentError, FormatError

HEAD = 1024  # bytes that tell what a file is
_XML_STARTS = (b"<", b"\0<", b"\0\0\0<", b"\xff\xfe", b"\xfe\xff")  # in UTF-8, -16 and -32
_ONNX_FIELDS = {bytes([number << 3 | 2]) for number in range(2, 9)}  # what follows ir_version, field 1, in a ModelProto
_MAGIC = {
    b"\x1f\x8b": "a gzip file (unpack it)",
    b"PK\x03\x04": "a zip file (unpack it)",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
}


def parse(xml: Any, what: str, root: str) -> etree._Element:
    """The root element of an XML text, bytes, file, or of an element that is already parsed.

    Parameters
    ----------
    xml : str, bytes, os.PathLike or lxml element
        A str that begins with "<" (after blanks) is the text itself, any other a path.
    what : str
        How errors name the input.
    root : str
        The tag that the root element must have.

    Raises
    ------
    FormatError
        Not well-formed, empty, with a document type, or with another root.
    ArgumentError
        Another type, or a file that cannot be read.
    """
    element = xml if isinstance(xml, etree._Element) else _parse_bytes(*_read(xml, what), what)
    if element.tag != root:
        raise FormatError(f"{what}: the root element is <{element.tag}>; expected <{root}>")
    return element


def source_path(xml: Any) -> Path | None:
    """The path that was given in place of XML; None where it is the XML itself."""
    return Path(xml) if isinstance(xml, (str, os.PathLike)) and not _is_text(xml) else None


def _is_text(xml: Any) -> bool:
    return isinstance(xml, str) and (not xml.strip() or xml.lstrip("\ufeff \t\r\n").startswith("<"))


def _read(xml: Any, what: str) -> tuple[bytes, str | None]:
    """The bytes, and their encoding where it is known from elsewhere than the XML declaration."""
    if _is_text(xml):
        try:
            return xml.encode(), "utf-8"
        except UnicodeEncodeError as error:
            raise FormatError(f"{what}: the text holds no XML characters ({error})") from None
    if isinstance(xml, (bytes, bytearray, memoryview)):
        data = bytes(xml)
        _recognise(what, data[:HEAD])
        return data, None
    if not isinstance(xml, (str, os.PathLike)):
        raise ArgumentError(
            f"{what}: {type(xml).__name__} was given; expected XML text, bytes, a path or an lxml element"
        )
    try:
        with Path(xml).open("rb") as file:
            head = file.read(HEAD)
            _recognise(f"{what}: {os.fspath(xml)!r}", head)
            return head + file.read(), None
    except FormatError:
        raise
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"{what}: {os.fspath(xml)!r} cannot be read ({error}); expected XML text or a path"
        ) from None


def _recognise(what: str, head: bytes) -> None:
    """Reject what is plainly no XML, however large it is, and say what it looks like."""
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(_XML_STARTS):
        return
    looks = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)
    if looks is None and head[:1] == b"\x08" and head[2:3] in _ONNX_FIELDS:
        looks = "an ONNX model (pyrnnx.frontends.onnx.read_model reads it)"
    if looks is None and b"\0" in head:
        looks = "binary data, as a .bin file of weights (give the .xml beside it)"
    if looks is not None:
        raise FormatError(f"{what}: not well-formed XML; it looks like {looks}")


def _parse_bytes(data: bytes, encoding: str | None, what: str) -> etree._Element:
    parser = etree.XMLParser(
        encoding=encoding,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    if not data.strip():
        raise FormatError(f"{what}: the XML is empty")
    try:
        element = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise FormatError(f"{what}: not well-formed XML ({error})") from None
    if getattr(element.getroottree().docinfo, "doctype", ""):  # the stubs lack it
        raise FormatError(f"{what}: the XML has a document type (DTD), which is refused")
    return element


def root_tag(path: Path) -> str:
    """The tag of a file's root element, from its beginning; "" where there is none: `parse` says why."""
    try:
        with path.open("rb") as file:
            events = etree.iterparse(file, ("start",), resolve_entities=False, no_network=True, load_dtd=False)
            return str(next(iter(events))[1].tag)
    except (etree.XMLSyntaxError, OSError, StopIteration):
        return ""
