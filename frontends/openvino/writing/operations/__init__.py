"""Writers, one function per operator; importing the package fills their table."""

from ..registry import WRITERS
from . import elementwise, linear, recurrent, shapes, slices

__all__ = [
    # the filled table
    "WRITERS",
    # the modules that fill it
    "elementwise",
    "linear",
    "recurrent",
    "shapes",
    "slices",
]
