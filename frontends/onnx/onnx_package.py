"""The onnx package, imported when it is first needed: the operators do without it."""

from __future__ import annotations

from typing import Any

from pyrnnx._internal.extras import import_package


def import_onnx(what: str = "an ONNX model") -> Any:
    """Return the onnx package, which `what` needs, or raise a PyrnnxError."""
    return import_package("onnx", what, "onnx")
