"""One module for each command; importing them puts them into the application, in this order."""

from pyrnnx.cli.commands import inspect, run, compare, conformance  # isort: skip

__all__ = ["compare", "conformance", "inspect", "run"]
