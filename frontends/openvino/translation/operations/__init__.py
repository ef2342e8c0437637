"""Translators, one function per operation; importing the package fills their table."""

from ..registry import TRANSLATORS, translator
from . import (
    activations,
    blocks,
    decoding,
    elementwise,
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
    # the filled table
    "TRANSLATORS",
    "translator",
    # the modules that fill it
    "activations",
    "blocks",
    "decoding",
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
