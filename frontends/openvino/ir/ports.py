"""The `<port>` elements of a `<layer>`, whatever the layer is, and the numbers and flags in XML attributes."""

from __future__ import annotations

from dataclasses import dataclass

from lxml import etree

from pyrnnx.errors import FormatError, shortened, shown

DYNAMIC = -1
MAX_RANK = 64  # NumPy's arrays have no more axes
MAX_DIGITS = 20  # more than any 64-bit number has: int() of a long text is slow


@dataclass(frozen=True)
class NetPort:
    """What a layer declares of one of its inputs or outputs.

    Attributes
    ----------
    id : int
    shape : tuple or None
        None stands for a dynamic dimension; a shape that is None for any rank. A port without ``<dim>`` is a scalar or
        of any rank, the XML does not tell: () where a Parameter or Const says so elsewhere, else None.
    precision : str or None
        "FP32", "I64", ...; None where the port does not say.
    names : tuple of str
        Names of the tensor; outputs only.
    """

    id: int
    shape: tuple[int | None, ...] | None
    precision: str | None = None
    names: tuple[str, ...] = ()


def layer_label(kind: str, name: str, identifier: str) -> str:
    """How errors name a layer of an IR."""
    named = f" {shown(name)}" if name else ""
    return shortened(kind) + named + (f" (id {shortened(identifier)})" if identifier else "")


def integer(text: str) -> int:
    """A decimal number, with a minus or without.

    Raises
    ------
    ValueError
        Any other text.
    """
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or len(text) > MAX_DIGITS:
        raise ValueError(text)
    return int(text)


def number(text: str) -> float:
    """A decimal number, infinity or NaN.

    Raises
    ------
    ValueError
        Any other text.
    """
    if not text.isascii() or "_" in text:  # which float() takes
        raise ValueError(text)
    return float(text)


def boolean(text: str) -> bool:
    """true or false, in any case, or 1 or 0.

    Raises
    ------
    ValueError
        Any other text.
    """
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("true", "1")


def split_names(text: str) -> tuple[str, ...]:
    """Names separated by commas; a comma within a name stands as "\\,"."""
    if "\\," not in text:
        return tuple(name for name in text.split(",") if name)
    parts = text.replace("\\,", "\0").split(",")
    return tuple(part.replace("\0", ",") for part in parts if part)


def read_ports(label: str, element: etree._Element, kind: str) -> tuple[NetPort, ...]:
    """The ports in ``<input>`` or ``<output>``, by ascending id.

    Raises
    ------
    FormatError
        An id that is missing, no number or stands twice; a dimension that is no size.
    """
    ports: dict[int, NetPort] = {}
    for parent in element.iterchildren(kind):
        for port in parent.iterchildren("port"):
            number = _port_id(label, kind, port.get("id", ""))
            if number in ports:
                raise FormatError(f"{label}: {kind} port id {number} stands twice")
            dims = tuple(_dimension(label, kind, number, dim.text or "") for dim in port.iterchildren("dim"))
            if len(dims) > MAX_RANK:
                raise FormatError(
                    f"{label}: {kind} port {number} has {len(dims)} dimensions; expected at most {MAX_RANK}"
                )
            ports[number] = NetPort(number, dims or None, port.get("precision"), split_names(port.get("names", "")))
    return tuple(ports[number] for number in sorted(ports))


def _port_id(label: str, kind: str, text: str) -> int:
    try:
        number = integer(text)
    except ValueError:
        number = -1
    if number < 0:
        raise FormatError(f"{label}: {kind} port id is {shown(text)}; expected a number, 0 or above")
    return number


def _dimension(label: str, kind: str, number: int, text: str) -> int | None:
    try:
        size = integer(text.strip())
    except ValueError:
        size = DYNAMIC - 1
    if size < DYNAMIC or size >= 2**63:
        raise FormatError(
            f"{label}: {kind} port {number} has dimension {shown(text)}; expected 0 or more, or -1 for dynamic"
        )
    return None if size == DYNAMIC else size
