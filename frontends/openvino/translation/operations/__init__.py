"""Translators, one function per operation; importing the package fills their table."""

from ..context import TRANSLATORS as TRANSLATORS
from . import (  # noqa: F401  # they fill the table
    elementwise,
    indexing,
    linear,
    pooling,
    recurrent,
    reductions,
    shapes,
    slices,
)
