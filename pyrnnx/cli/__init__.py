"""The command `pyrnnx`: models inspected, run and compared, runtimes checked against the oracle."""

from pyrnnx.cli.entry import main

__all__ = ["main"]
