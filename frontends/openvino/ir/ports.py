"""Ports of layers of any type, read from `<port>` elements."""

from __future__ import annotations

from dataclasses import dataclass

from lxml import etree

from pyrnnx.errors import FormatError, shown

from .numbers import integer

DYNAMIC = -1
MAX_RANK = 64  # NumPy's arrays have no more axes


@dataclass(frozen=True)
class NetPort:
    """Declaration of one input or output of a layer.

    Attributes
    ----------
    id : int
    shape : tuple or None
        A size of None is a dynamic dimension, a shape of None any rank. A port without ``<dim>`` may be a scalar or
        have any rank: the shape is () if the ``<data>`` of a Parameter or Const declares a scalar, else None.
    precision : str or None
        "FP32", "I64", ...; None if the port declares none.
    names : tuple of str
        Names of the tensor; outputs only.
    """

    id: int
    shape: tuple[int | None, ...] | None
    precision: str | None = None
    names: tuple[str, ...] = ()


def split_names(text: str) -> tuple[str, ...]:
    r"""Split names at commas; a comma in a name is written as "\,"."""
    if "\\," not in text:
        return tuple([name for name in text.split(",") if name])
    parts = text.replace("\\,", "\0").split(",")
    return tuple(part.replace("\0", ",") for part in parts if part)


def read_ports(label: str, element: etree._Element, kind: str) -> tuple[NetPort, ...]:
    """Read the ports in ``<input>`` or ``<output>``, in the order of the document; ids only name them in edges.

    Raises
    ------
    FormatError
        An id is missing, not a number or occurs twice, or a dimension is not a size.
    """
    ports: dict[int, NetPort] = {}
    for parent in element.iterchildren(kind):
        for port in parent.iterchildren("port"):
            number = _port_id(label, kind, port.get("id", ""))
            if number in ports:
                raise FormatError(f"{label}: {kind} port id {number} occurs twice")
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
    return tuple(ports.values())


def _port_id(label: str, kind: str, text: str) -> int:
    try:
        number = integer(text)
    except ValueError:
        number = -1
    if number < 0:
        raise FormatError(f"{label}: {kind} port id is {shown(text)}; expected a number, 0 or above")
    return number


def _dimension(element: etree._Element) -> int | None:
    """Return the size in a ``<dim>``; None if it is dynamic.

    Raises
    ------
    ValueError
        The text is not a size; it is the error's argument.
    """
    text = element.text or ""
    try:
        size = integer(text.strip())
    except ValueError:
        raise ValueError(text) from None
    if not DYNAMIC <= size < 2**63:
        raise ValueError(text)
    return None if size == DYNAMIC else size
