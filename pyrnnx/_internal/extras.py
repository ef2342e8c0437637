"""Packages that an extra of pyrnnx installs: their imports, and words for their absence."""

from importlib import import_module
from typing import Any

from pyrnnx.errors import PyrnnxError


def import_package(package: str, what: str, extra: str) -> Any:
    """Return a package or one of its modules, which `what` needs; the arguments are those of `needs`."""
    try:
        return import_module(package)
    except (ImportError, OSError) as error:
        raise PyrnnxError(needs(what, package.partition(".")[0], extra)) from error


def needs(what: str, package: str, extra: str) -> str:
    """Return a message that `what`, such as "reading .keras files", needs a package, with the command that installs it.

    The command is right without a pyrnnx on a package index: pip keeps the installed one, and adds the packages of
    its extra.
    """
    return f'{what} needs the package {package}; `python -m pip install "pyrnnx[{extra}]"` adds it to this pyrnnx'
