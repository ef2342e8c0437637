"""Fixtures for tests of models that need much memory or time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pyrnnx


@pytest.fixture
def small_limit() -> Iterator[None]:
    """Limit the memory, to spare the machine if a test fails."""
    before = pyrnnx.get_memory_limit()
    pyrnnx.set_memory_limit(64 * 2**20)
    yield
    pyrnnx.set_memory_limit(before)
