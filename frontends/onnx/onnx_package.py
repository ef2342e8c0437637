"""The onnx package, imported when it is first needed: the operators do without it."""

from __future__ import annotations

from typing import Any

from pyrnnx._internal.extras import needs
from pyrnnx.errors import PyrnnxError


def import_onnx() -> Any:
    """Return the onnx package.

    Raises
    ------
    PyrnnxError
        It is not installed.
    """
    try:
        import onnx
    except ImportError as error:
        raise PyrnnxError(needs("an ONNX model", "onnx", "onnx")) from error
    return onnx
