"""XML text to elements, with what XML can do beside carrying text switched off: no DTD, no entities, no network."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lxml import etree

from pyrnnx.errors import ArgumentError, FormatError


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


def _read(xml: Any, what: str) -> tuple[bytes, str | None]:
    """The bytes, and their encoding where it is known from elsewhere than the XML declaration."""
    if isinstance(xml, str) and (not xml.strip() or xml.lstrip("\ufeff \t\r\n").startswith("<")):
        try:
            return xml.encode(), "utf-8"
        except UnicodeEncodeError as error:
            raise FormatError(f"{what}: the text holds no XML characters ({error})") from None
    if isinstance(xml, (bytes, bytearray, memoryview)):
        return bytes(xml), None
    if not isinstance(xml, (str, os.PathLike)):
        raise ArgumentError(
            f"{what}: {type(xml).__name__} was given; expected XML text, bytes, a path or an lxml element"
        )
    try:
        return Path(xml).read_bytes(), None
    except (OSError, ValueError) as error:
        raise ArgumentError(
            f"{what}: {os.fspath(xml)!r} cannot be read ({error}); expected XML text or a path"
        ) from None


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
