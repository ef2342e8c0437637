"""The command of pyrnnx, for tests that run it many times in one process."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def built_once() -> Iterator[pytest.MonkeyPatch]:
    """Build the application once: Typer reads the annotations of all commands again for each call."""
    import typer

    get_command = typer.main.get_command

    @functools.cache
    def built(application: typer.Typer, detection: str | None) -> Any:
        return get_command(application)

    def quick(application: typer.Typer) -> Any:
        return built(application, os.environ.get("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", quick)
        yield patch
