"""Writers, one function per operator; importing the package fills their table."""

from ..context import WRITERS
from . import bodies, elementwise, images, indexing, linear, quantized, recurrent, sequences, shapes, slices, windows

__all__ = [
    # the filled table
    "WRITERS",
    # the modules that fill it
    "bodies",
    "elementwise",
    "images",
    "indexing",
    "linear",
    "quantized",
    "recurrent",
    "sequences",
    "shapes",
    "slices",
    "windows",
]
