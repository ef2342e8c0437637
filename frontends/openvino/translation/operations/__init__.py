"""Translators, one function per operation; importing the package fills their table."""

from ..context import TRANSLATORS, translator
from . import (
    activations,
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
