"""One module for each command; importing them puts them into the application, in this order."""

from pyrnnx.cli.commands import inspect, run, compare, conformance, config  # isort: skip

__all__ = ["compare", "config", "conformance", "inspect", "run"]
