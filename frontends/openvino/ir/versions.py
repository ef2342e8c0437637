"""Versions of the format: which are read, and errors and warnings for others."""

from __future__ import annotations

from lxml import etree

from pyrnnx.errors import FormatError, UnsupportedError, shown

from .numbers import integer

VERSIONS = (10, 11)
_FIRST, _NEWEST = 2, VERSIONS[-1]  # versions that OpenVINO has written
_HOW_TO_CONVERT = (
    "Only OpenVINO 2020.4 and earlier run it: convert the original model again, with openvino.convert_model, or with "
    "the Model Optimizer of OpenVINO 2020.1 or later"
)


def read_version(what: str, root: etree._Element) -> int:
    """Return the version of a `<net>`, 10 or above.

    Raises
    ------
    FormatError
        The version is missing.
    UnsupportedError
        The version is below 10.
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
    return version


def newer(version: int) -> list[str]:
    """Return a warning if the version is newer than any known."""
    if version <= _NEWEST:
        return []
    return [f"IR version is {shown(version)}, newer than any known: it is read as version {_NEWEST}"]
