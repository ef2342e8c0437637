"""Hypothesis profiles, and wheels that hold real models, fetched once into pytest's cache directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# `HYPOTHESIS_PROFILE=dev pytest ...` for a quick, random look; the default is the same examples on every machine.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=500)
settings.register_profile("dev", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

SILERO = "silero-vad==6.2.3"
# What pip prints when it got no answer, as opposed to an answer that it did not like.
UNREACHABLE = re.compile(
    r"connection broken by|ConnectionError|NewConnectionError|NameResolutionError|Max retries exceeded|ProxyError"
    r"|ReadTimeout|ConnectTimeout|timed out|Network is unreachable|Temporary failure in name resolution",
    re.IGNORECASE,
)

FetchWheel = Callable[[str], Path]


def download(requirement: str, folder: Path) -> Path:
    """The wheel of `requirement` in `folder`; skips the test if no registry answers, fails it for any other reason."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    result = subprocess.run([*command, "--retries=2", requirement], capture_output=True, text=True, check=False)
    if result.returncode:
        output = result.stdout + result.stderr
        if found := UNREACHABLE.search(output):
            pytest.skip(f"the package registry cannot be reached for {requirement}: {found[0]}")
        pytest.fail(f"pip download {requirement}:\n{output}")
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def fetch_wheel(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> FetchWheel:
    """fetch_wheel("name==version") -> folder of the unpacked wheel, which stays in the cache between runs."""
    cache = getattr(request.config, "cache", None)
    root = cache.mkdir("wheels") if cache is not None else tmp_path_factory.mktemp("wheels")

    def fetch(requirement: str) -> Path:
        unpacked: Path = root / requirement
        if not unpacked.is_dir():
            with tempfile.TemporaryDirectory(dir=root) as scratch:
                wheel = download(requirement, Path(scratch))
                contents = Path(scratch) / "contents"
                zipfile.ZipFile(wheel).extractall(contents)
                try:
                    contents.rename(unpacked)  # whole or not at all
                except OSError:
                    if not unpacked.is_dir():  # else another worker was first
                        raise
        return unpacked

    return fetch


@pytest.fixture(scope="session")
def silero_models(fetch_wheel: FetchWheel) -> Path:
    """The folder of the .onnx models of silero-vad, a voice activity detector."""
    return fetch_wheel(SILERO) / "silero_vad" / "data"
