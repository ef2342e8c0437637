"""The `<port>` elements of a `<layer>`, whatever the layer is."""

from __future__ import annotations

from dataclasses import dataclass

from lxml import etree

from pyrnnx.errors import FormatError, shown

from .numbers import integer

DYNAMIC = -1
MAX_RANK = 64  # NumPy's arrays have no more axes


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


def split_names(text: str) -> tuple[str, ...]:
    """Names separated by commas; a comma within a name stands as "\\,"."""
    if "\\," not in text:
        return tuple([name for name in text.split(",") if name])
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
            try:
                dims = tuple(map(_dimension, port.iterchildren("dim")))
            except ValueError as error:
                raise FormatError(
                    f"{label}: {kind} port {number} has dimension {shown(error.args[0])}; expected 0 or more, or -1 "
                    "for dynamic"
                ) from None
            if len(dims) > MAX_RANK:
                raise FormatError(
                    f"{label}: {kind} port {number} has {len(dims)} dimensions; expected at most {MAX_RANK}"
                )
            names = port.get("names")
            ports[number] = NetPort(number, dims or None, port.get("precision"), split_names(names) if names else ())
    return tuple([ports[number] for number in sorted(ports)])


def _port_id(label: str, kind: str, text: str) -> int:
    try:
        number = integer(text)
    except ValueError:
        number = -1
    if number < 0:
        raise FormatError(f"{label}: {kind} port id is {shown(text)}; expected a number, 0 or above")
    return number


def _dimension(element: etree._Element) -> int | None:
    """Of a ``<dim>``; None where it is dynamic.

    Raises
    ------
    ValueError
        With the text, where it is no size.
    """
    text = element.text or ""
    try:
        size = integer(text.strip())
    except ValueError:
        raise ValueError(text) from None
    if not DYNAMIC <= size < 2**63:
        raise ValueError(text)
    return None if size == DYNAMIC else size
