"""One function per operation; importing this package puts all of them into the table of translators."""

from ..registry import TRANSLATORS, translator
from . import (
    blocks,
    decoding,
    elementwise,
    embeddings,
    images,
    indexing,
    linear,
    pooling,
    recurrent,
    reductions,
    shapes,
    slices,
    spectra,
)

__all__ = [
    # the table, filled
    "TRANSLATORS",
    "translator",
    # what fills it
    "blocks",
    "decoding",
    "elementwise",
    "embeddings",
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
