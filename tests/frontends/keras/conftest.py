"""Reading of HDF5 in the process of the tests."""

from __future__ import annotations

import pytest

from pyrnnx.frontends.keras import file, process


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Call HDF5 here: a process for each file takes long, and test_process.py is about those."""
    monkeypatch.setattr(file, "read_weights", process.read_variables)
