"""Messages of a failed `assert_same`."""

from __future__ import annotations

from typing import Any

import pytest

from pyrnnx.testing import assert_same

WIDTH = 76  # of 80 columns, what pytest leaves


def message(a: Any, b: Any, **options: Any) -> str:
    """In one line; that it has the width of a terminal is checked here."""
    with pytest.raises(AssertionError) as caught:
        assert_same(a, b, **options)
    assert all(len(line) <= WIDTH for line in str(caught.value).splitlines())
    return " ".join(str(caught.value).split())
