"""The command `pyrnnx`: inspect, run and compare models, and check runtimes against the oracle."""

from pyrnnx.cli.entry import main

__all__ = ["main"]
