"""The soak of shared layers, stacks, models and streams, for a short time."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("onnxruntime")

from shared_for_long import GROWTH, Soak


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_threads_share_everything_while_settings_change() -> None:
    soak = Soak(threads=16, calls=60)
    soak.run()
    assert not soak.mistakes
    assert sum(soak.done.values()) == 960
    assert len(soak.done) == len(soak.subjects)
    assert soak.changes
    assert soak.growth() < GROWTH
