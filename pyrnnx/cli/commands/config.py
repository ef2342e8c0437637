"""The command `pyrnnx config`: the settings of this machine and the versions of packages."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from rich.console import RenderableType

from pyrnnx.cli import tables
from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Json
from pyrnnx.cli.output import Result
from pyrnnx.config import config_rows, get_config

# Packages that pyrnnx depends on, or uses to read and run models.
_PACKAGES = ("numpy", "scipy", "lxml", "onnx", "ml_dtypes", "onnxruntime", "typer", "rich", "matplotlib")


@command("config", "pyrnnx config", "PYRNNX_ENGINE=blas pyrnnx config --json")
def config(as_json: Json = False) -> Result:
    """Show the engine, instruction sets and threads of this machine, and the versions of packages."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from pyrnnx.testing.runtimes import RUNTIMES

    packages: dict[str, str | None] = {"python": platform.python_version(), **dict.fromkeys(_PACKAGES)}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            packages[name] = version(name)
    runtimes = {name: runtime.version() if runtime.installed() else None for name, runtime in RUNTIMES.items()}
    facts = {**get_config(), "packages": packages, "runtimes": runtimes}
    return Result(facts, _shown(config_rows(), packages, runtimes))


def _shown(
    rows: dict[str, str], packages: dict[str, str | None], runtimes: dict[str, str | None]
) -> list[RenderableType]:
    def cells(versions: dict[str, str | None]) -> list[tuple[str, Any]]:
        missing = tables.text("not installed", "dim")
        return [(name, missing if text is None else text or "unknown version") for name, text in versions.items()]

    return [
        tables.heading("Configuration"),
        tables.pairs(rows.items()),
        tables.heading("Packages"),
        tables.pairs(cells(packages)),
        tables.heading("Runtimes of pyrnnx conformance"),
        tables.pairs(cells(runtimes)),
    ]
