"""`pyrnnx config`: which engine runs here, and what else is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyrnnx.cli.app import command
from pyrnnx.cli.arguments import Json
from pyrnnx.cli.result import Result

if TYPE_CHECKING:
    from rich.console import RenderableType

# What pyrnnx is built on, or reads and runs models with.
_PACKAGES = ("numpy", "scipy", "lxml", "onnx", "ml_dtypes", "onnxruntime", "typer", "rich", "matplotlib")


@command("config", "pyrnnx config", "PYRNNX_ENGINE=blas pyrnnx config --json")
def config(as_json: Json = False) -> Result:
    """Show the engine, instruction sets and threads of this machine, and what is installed."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from pyrnnx.config import config_rows, get_config
    from pyrnnx.testing.runtimes import RUNTIMES

    packages: dict[str, str | None] = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            packages[name] = version(name)
        except PackageNotFoundError:  # noqa: PERF203  # of some packages
            packages[name] = None
    runtimes = {name: one.version() if one.installed() else None for name, one in RUNTIMES.items()}
    facts = {**get_config(), "packages": packages, "runtimes": runtimes}
    return Result(facts, _shown(config_rows(), packages, runtimes))


def _shown(
    rows: dict[str, str], packages: dict[str, str | None], runtimes: dict[str, str | None]
) -> list[RenderableType]:
    from pyrnnx.cli import tables

    def versions(found: dict[str, str | None]) -> list[tuple[str, Any]]:
        return [
            (name, tables.text("not installed", "dim") if one is None else one or "of unknown version")
            for name, one in found.items()
        ]

    return [
        tables.heading("Configuration"),
        tables.pairs(rows.items()),
        tables.heading("Packages"),
        tables.pairs(versions(packages)),
        tables.heading("Runtimes of pyrnnx conformance"),
        tables.pairs(versions(runtimes)),
    ]
