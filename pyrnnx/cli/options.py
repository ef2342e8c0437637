"""Options in messages in place of the arguments of Python functions."""

from __future__ import annotations

import re
from collections.abc import Mapping

OPTIONS = {"dims": "--dim", "seed": "--seed", "against": "--against", "inputs": "--input"}


def with_options(message: str, options: Mapping[str, str]) -> str:
    """Return a message with options in place of arguments: "axes is 'NT'" becomes "--axes is 'NT'".

    Parameters
    ----------
    message : str
        Arguments occur as "cast=True converts", "axes is 'NT'", or "expected input, the name of".
    options : mapping
        Options by argument; a key of several words is replaced wherever it occurs.
    """
    for name, option in options.items():
        in_messages = rf"{name}(?= (?:is|has|lacks|was) )|(?<=expected ){name}(?=,)|{name}(?:=True\b|(?==\S))"
        pattern = rf"\b{name}\b" if " " in name else rf"(?<![\w'-])(?:{in_messages})"
        message = re.sub(pattern, option, message)
    return message
