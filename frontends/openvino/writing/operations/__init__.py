"""Writers, one function per operator; importing the package fills their table."""

from ..context import WRITERS as WRITERS
from . import (  # noqa: F401  # they fill the table
    bodies,
    elementwise,
    images,
    indexing,
    linear,
    quantized,
    sequences,
    shapes,
)
