"""One module for each command; importing them puts them into the application, in this order."""

from pyrnnx.cli.commands import compare, conformance

__all__ = ["compare", "conformance"]
