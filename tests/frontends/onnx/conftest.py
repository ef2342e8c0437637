"""Fixtures for tests of models that need much memory or time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pyrnnx


@pytest.fixture
def small_limit() -> Iterator[None]:
    """Of memory, so that the machine that runs the tests is spared where a test fails."""
    before = pyrnnx.get_memory_limit()
    pyrnnx.set_memory_limit(64 * 2**20)
    yield
    pyrnnx.set_memory_limit(before)
