"""Alias of the oracle `pyrnnx.reference` in the conformance kit."""

from pyrnnx.reference import *  # noqa: F403
from pyrnnx.reference import __all__  # noqa: F401
