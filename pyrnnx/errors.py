"""Errors and warnings of pyrnnx: one root, so that callers can catch everything that pyrnnx rejects."""

from __future__ import annotations


class PyrnnxError(ValueError):
    """Root of everything that pyrnnx rejects.

    The message names the operator or layer, the argument, what was given and what is allowed.
    """


class ArgumentError(PyrnnxError):
    """An array or a value does not fit: its rank, shape, dtype or range."""


class UnsupportedError(PyrnnxError):
    """The input is well-formed, but the opset, format or convention has no such thing."""


class FormatError(PyrnnxError):
    """A file, an XML text or a model is broken or contradicts itself."""


class PyrnnxWarning(UserWarning):
    """Something that was given has no effect."""
