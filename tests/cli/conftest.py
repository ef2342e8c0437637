"""Commands that run many times in one process, and files that are not synchronized to the disk."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import quick_commands


@pytest.fixture(scope="session", autouse=True)
def _quick_commands() -> Iterator[None]:
    with quick_commands.built_once() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
