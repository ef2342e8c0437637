"""The table of translators, filled: each module of operations puts its own into it."""

from . import operations  # noqa: F401
from .call import TRANSLATORS, translator

__all__ = ["TRANSLATORS", "translator"]
