"""Options in messages in place of the arguments of Python functions."""

from __future__ import annotations

import re
from collections.abc import Mapping

OPTIONS = {
    "dims": "--dim",
    "seed": "--seed",
    "against": "--against",
    "inputs": "--input",
    "layers": "--layer",
    "opset": "--opset",
    "or leave it out of `layers`": "or a run without --stream",
}


def with_options(message: str, options: Mapping[str, str]) -> str:
    """Return a message with options in place of arguments: "axes is 'NT'" becomes "--axes is 'NT'".

    Parameters
    ----------
    message : str
        Arguments occur as "cast=True converts", "rate=8000", "axes is 'NT'", or "expected input, the name of".
    options : mapping
        Options by argument. A key with a space or an underscore is replaced wherever it occurs, because it is no
        English word.
    """
    for name, option in options.items():
        before = r"(?<![\w'.-])"
        message = re.sub(rf"{before}{name}=True(?!\w)", option, message)
        message = re.sub(rf"{before}{name}=(?:'([^' ]+)'|(?=[\w.]))", rf"{option} \1", message)
        in_messages = rf"{name}(?= (?:is|has|lacks|was) )|(?<=expected ){name}(?=,)"
        pattern = re.escape(name) if re.search("[ _]", name) else in_messages
        message = re.sub(rf"{before}(?:{pattern})(?!\w)", option, message)
        message = message.replace(f"{option} is None", f"{option} is not set")
    return message
