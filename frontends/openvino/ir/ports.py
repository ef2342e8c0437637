"""Ports of layers of any type, and shapes in `<data shape="...">`."""

from __future__ import annotations

from dataclasses import dataclass

from lxml import etree

from pyrnnx.errors import FormatError, shown
from pyrnnx.operator.tensor_info import Interval, fits

from .numbers import count, integer

DYNAMIC = -1
MAX_RANK = 64  # NumPy's arrays have no more axes

Size = int | Interval | None
Shape = tuple[Size, ...]


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
    parts = text.replace("\\,", "\0").split(",")
    return tuple([part.replace("\0", ",") for part in parts if part])


def read_ports(label: str, element: etree._Element, kind: str) -> tuple[NetPort, ...]:
    """Read the ports in ``<input>`` or ``<output>``, in the order of the document; ids only name them in edges."""
    ports: dict[int, NetPort] = {}
    for parent in element.iterchildren(kind):
        for port in parent.iterchildren("port"):
            number = count(label, f"{kind} port id", port.get("id", ""))
            if number in ports:
                raise FormatError(f"{label}: {kind} port id {number} occurs twice")
            dims = tuple([_dimension(label, kind, number, dim.text or "") for dim in port.iterchildren("dim")])
            if len(dims) > MAX_RANK:
                raise FormatError(
                    f"{label}: {kind} port {number} has {len(dims)} dimensions; expected at most {MAX_RANK}"
                )
            names = split_names(port.get("names", ""))
            ports[number] = NetPort(number, dims or None, port.get("precision"), names)
    return tuple(ports.values())


def _dimension(label: str, kind: str, number: int, text: str) -> int | None:
    try:
        size = integer(text.strip(), DYNAMIC)
    except ValueError:
        raise FormatError(
            f"{label}: {kind} port {number} has dimension {shown(text)}; expected 0 or more, or -1 for dynamic"
        ) from None
    return None if size == DYNAMIC else size


def parse_shape(label: str, text: str) -> Shape | None:
    """Parse a shape: "" is a scalar, "..." any rank, "?" or "-1" any size (None both), "1..8", "1..", "..8" bounds."""
    inside = text.strip()
    if inside.startswith("[") and inside.endswith("]"):
        inside = inside[1:-1].strip()
    if inside == "...":
        return None
    try:
        shape = tuple([_size(item.strip()) for item in inside.split(",")]) if inside else ()
    except ValueError:
        raise FormatError(
            f"{label}: shape is {shown(text)}; expected sizes separated by commas, each a number, ?, or bounds as 1..8"
        ) from None
    if len(shape) > MAX_RANK:
        raise FormatError(f"{label}: shape has {len(shape)} dimensions; expected at most {MAX_RANK}")
    return shape


def _size(item: str) -> Size:
    if item in ("?", "-1"):
        return None
    low, dots, high = item.partition("..")
    if not dots:
        return integer(item, 0)
    lowest = integer(low, 0) if low.strip() else 0
    highest = integer(high, lowest) if high.strip() else None
    if (lowest, highest) == (0, None):
        return None
    return lowest if lowest == highest else Interval(lowest, highest)


def port_shape(label: str, text: str | None, shape: Shape | None, port: NetPort) -> tuple[int | None, ...] | None:
    """Merge the shapes that `<data>` (`text`, parsed as `shape`) and the output port declare."""
    if shape is None:
        return port.shape
    declared = port.shape if port.shape is not None else (None,) * len(shape)
    if not fits(shape, declared):
        raise FormatError(
            f"{label}: <data> has shape {shown(text or '')}, output port {port.id} has {port.shape}; expected the same"
        )
    return tuple([size if isinstance(size, int) else other for other, size in zip(declared, shape, strict=True)])
