"""onnx's own node tests: all, or those of some operators."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from types import ModuleType
from unittest import mock

RECURRENT = ("gru", "lstm", "rnn")


@contextmanager
def only(modules: Collection[str]) -> Iterator[None]:
    """Inside, onnx makes the data of these tests and of no others."""
    import onnx.backend.test.loader

    def import_some(package: ModuleType) -> None:
        for name in modules:
            importlib.import_module(f"onnx.backend.test.case.node.{name}")

    with (
        mock.patch.object(onnx.backend.test.loader, "import_recursive", import_some),
        mock.patch.object(onnx.backend.test.case.node, "import_recursive", import_some),
    ):
        yield
