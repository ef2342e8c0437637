"""One function per operator; importing this package puts all of them into the table of writers."""

from ..registry import WRITERS
from . import elementwise, linear, recurrent, shapes, slices

__all__ = [
    # the table, filled
    "WRITERS",
    # what fills it
    "elementwise",
    "linear",
    "recurrent",
    "shapes",
    "slices",
]
