"""onnx's own node tests of the recurrent operators."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from unittest import mock


@contextmanager
def recurrent_only() -> Iterator[None]:
    """Inside, onnx makes the data of no other tests: those of all operators take it seconds."""
    import onnx.backend.test.loader

    def import_some(package: ModuleType) -> None:
        for name in ("gru", "lstm", "rnn"):
            importlib.import_module(f"onnx.backend.test.case.node.{name}")

    with (
        mock.patch.object(onnx.backend.test.loader, "import_recursive", import_some),
        mock.patch.object(onnx.backend.test.case.node, "import_recursive", import_some),
    ):
        yield
