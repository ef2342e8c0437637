"""One function per operation; importing this package puts all of them into the table of translators."""

from ..registry import TRANSLATORS, translator
from . import elementwise, images, indexing, linear, pooling, recurrent, reductions, shapes, slices, spectra

__all__ = [
    # the table, filled
    "TRANSLATORS",
    "translator",
    # what fills it
    "elementwise",
    "images",
    "indexing",
    "linear",
    "pooling",
    "recurrent",
    "reductions",
    "shapes",
    "slices",
    "spectra",
]
