"""One function per operation; importing this package puts all of them into the table of translators."""

from . import elementwise, images, indexing, linear, pooling, recurrent, reductions, shapes, slices, spectra

__all__ = [
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
