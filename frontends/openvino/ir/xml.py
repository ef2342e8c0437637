"""Parser of XML with its risky features disabled: no DTD, no entities, no network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lxml import etree

from pyrnnx._internal.files import is_path, read_regular
from pyrnnx.errors import ArgumentError, FormatError, PyrnnxError, printable, shortened, shown

LARGEST_FILE = 2**28  # bytes of an .xml, enough for 100,000 layers: it contains no weights


def parse(xml: Any, what: str, *roots: str) -> etree._Element:
    """Return the root element of XML: text, bytes, the path of a file of at most 256 MiB, or an element.

    A str that begins with "<" (after blanks) is the text itself, any other a path. `what` is the name of the input in
    errors, `roots` are the allowed tags.
    """
    element = xml if isinstance(xml, etree._Element) else _parse_bytes(*_read(xml, what), what)
    if element.tag not in roots:
        expected = " or ".join(f"<{root}>" for root in roots)
        raise FormatError(f"{what}: the root element is <{shortened(str(element.tag))}>; expected {expected}")
    return element


@contextmanager
def named_errors(path: Path | None) -> Iterator[None]:
    """Add the path of the file, if there is one, to errors in its content."""
    try:
        yield
    except PyrnnxError as error:
        if path is None or os.fspath(path) in str(error) or shown(os.fspath(path)) in str(error):
            raise
        raise type(error)(f"{printable(shortened(os.fspath(path)))}: {error}") from error.__cause__


def source_path(xml: Any) -> Path | None:
    """Return the path of a file of XML; None if the argument is the XML itself."""
    if not is_path(xml) or _is_text(xml):
        return None
    return Path(xml)


def _is_text(xml: Any) -> bool:
    return isinstance(xml, str) and (not xml.strip() or xml.lstrip("\ufeff \t\r\n").startswith("<"))


def _read(xml: Any, what: str) -> tuple[bytes, str | None]:
    """Return the bytes, and their encoding; None if the XML declares it."""
    if _is_text(xml):
        try:
            return xml.encode(), "utf-8"
        except UnicodeEncodeError as error:
            raise FormatError(f"{what}: the text has characters that XML does not allow ({error})") from None
    if isinstance(xml, (bytes, bytearray, memoryview)):
        return bytes(xml), None
    if source_path(xml) is None:
        raise ArgumentError(
            f"{what}: {type(xml).__name__} was given; expected XML text, bytes, a path or an lxml element"
        )
    expected = "XML text, or the path of a file" if isinstance(xml, str) else "an .xml file"
    return read_regular(what, xml, most=LARGEST_FILE, expected=expected), None


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
        raise FormatError(f"{what}: not well-formed XML ({getattr(error, 'msg', error)})") from None
    if getattr(element.getroottree().docinfo, "doctype", ""):  # the stubs lack it
        raise FormatError(f"{what}: the XML has a document type (DTD), which is refused")
    return element
