"""Commands, one module each; importing them registers them in this order."""

from pyrnnx.cli.commands import inspect, run, score, compare, check, convert, bench, conformance, config  # isort: skip

__all__ = ["bench", "check", "compare", "config", "conformance", "convert", "inspect", "run", "score"]
