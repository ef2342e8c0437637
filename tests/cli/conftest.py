"""Commands that run many times in one process, and files that are not synchronized to the disk."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from typing import Any

import pytest
import typer


@pytest.fixture(scope="session", autouse=True)
def _quick_commands() -> Iterator[None]:
    """Build the application once: Typer reads the annotations of all commands again for each call."""
    get_command = typer.main.get_command

    @functools.cache
    def built(application: typer.Typer, detection: str | None) -> Any:
        return get_command(application)

    def quick(application: typer.Typer) -> Any:
        return built(application, os.environ.get("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", quick)
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
