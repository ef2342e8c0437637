"""XML text to elements, with what XML can do beside carrying text switched off: no DTD, no entities, no network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lxml import etree

from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, shortened, shown
from pyrnnx.files import HEAD, read_regular

LARGEST_FILE = 2**28  # bytes of an .xml: weights are not in it, and those of 100,000 layers take less
_EXPECTED = "XML text or a path"
_XML_STARTS = (b"<", b"\0<", b"\0\0\0<", b"\xff\xfe", b"\xfe\xff")  # in UTF-8, -16 and -32
_ONNX_FIELDS = {bytes([number << 3 | 2]) for number in range(2, 9)}  # what follows ir_version, field 1, in a ModelProto
_MAGIC = {
    b"\x1f\x8b": "a gzip file (unpack it)",
    b"PK\x03\x04": "a zip file (unpack it)",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
}


def parse(xml: Any, what: str, *roots: str) -> etree._Element:
    """The root element of an XML text, bytes, file, or of an element that is already parsed.

    Parameters
    ----------
    xml : str, bytes, os.PathLike or lxml element
        A str that begins with "<" (after blanks) is the text itself, any other a path.
    what : str
        How errors name the input.
    *roots : str
        Tags that the root element may have.

    Raises
    ------
    FormatError
        Not well-formed, empty, with a document type, or with another root.
    ArgumentError
        Another type; a file that cannot be read, is no regular one, or has more than 256 MiB.
    """
    element = xml if isinstance(xml, etree._Element) else _parse_bytes(*_read(xml, what), what)
    if element.tag not in roots:
        expected = " or ".join(f"<{root}>" for root in roots)
        raise FormatError(f"{what}: the root element is <{shortened(str(element.tag))}>; expected {expected}")
    return element


@contextmanager
def named_errors(path: Path | None) -> Iterator[None]:
    """Errors in what a file says name the file, if it is one."""
    try:
        yield
    except PyrnnxError as error:
        if path is None or os.fspath(path) in str(error):
            raise
        raise type(error)(f"{shortened(os.fspath(path))}: {error}") from error.__cause__


def source_path(xml: Any) -> Path | None:
    """The path that was given in place of XML; None where it is the XML itself."""
    if not isinstance(xml, (str, os.PathLike)) or _is_text(xml) or not isinstance(os.fspath(xml), str):
        return None
    return Path(xml)


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
    if source_path(xml) is None:
        raise ArgumentError(
            f"{what}: {type(xml).__name__} was given; expected XML text, bytes, a path or an lxml element"
        )
    name = f"{what}: {shown(os.fspath(xml))}"
    recognise = partial(_recognise, name)
    return read_regular(what, xml, most=LARGEST_FILE, expected=_EXPECTED, recognise=recognise), None


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
