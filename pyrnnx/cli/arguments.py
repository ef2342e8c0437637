"""Arguments that several commands take, and texts read as numbers.

They are declared as texts: what a text has to be is said by pyrnnx's own errors, alike with every version of Typer.
"""

from __future__ import annotations

import math
from typing import Annotated

import typer

from pyrnnx.errors import ArgumentError, shown

MODEL_FILE = "an .onnx model, an OpenVINO .xml model, or an .xml file with one recurrent <layer>"

Json = Annotated[bool, typer.Option("--json", help="Write the result as JSON.")]
Seed = Annotated[str, typer.Option("--seed", "--random", metavar="INTEGER", help="Of the random inputs.")]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        "--inputs",
        metavar="NAME=FILE.npy",
        help="NAME=FILE.npy, NAME=NUMBER, or FILE.npz with arrays by name; may be given again.",
    ),
]
Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="NAME=SIZE", help="Size of a symbolic dimension; may be given again."),
]


def model_suffixes(incomplete: str) -> list[str]:
    """Completions of the path of a model: folders, and files that `pyrnnx.load` reads."""
    from glob import escape, glob
    from os.path import isdir

    found = sorted(glob(f"{escape(incomplete)}*"))
    return [f"{one}/" if isdir(one) else one for one in found if isdir(one) or one.endswith((".onnx", ".xml"))]


def runtime_names(incomplete: str) -> list[str]:
    """Completions of the name of a runtime."""
    from pyrnnx.testing.runtimes import RUNTIMES

    return [name for name in RUNTIMES if name.startswith(incomplete)]


def integer(label: str, text: str, least: int | None = None) -> int:
    """A text as an integer.

    Parameters
    ----------
    label : str
        The command and the option, as errors name them: "compare: --seed".
    text : str
    least : int, optional
        What it has to be at least.

    Raises
    ------
    ArgumentError
        A text that is none, or a smaller one.
    """
    try:
        value = int(text)
    except ValueError:  # also of more digits than Python reads
        raise ArgumentError(f"{label}: {shown(text)} is no integer; expected an integer") from None
    if least is not None and value < least:
        raise ArgumentError(f"{label} is {shown(value)}; expected an integer, {least} or above")
    return value


def number(label: str, text: str, what: str = "number of 0 or above", *, above: bool = False) -> float:
    """A text as a finite number of 0 or above; `above`: not of 0 itself.

    Raises
    ------
    ArgumentError
        A text that is none: "... is no `what`".
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 if above else value >= 0) or value == math.inf:
        raise ArgumentError(f"{label}: {shown(text)} is no {what}")
    return value


def named(label: str, texts: list[str] | None, expected: str = "NAME=SIZE") -> dict[str, str]:
    """Texts of the form NAME=VALUE; the last "=" parts them, for names may have some.

    Raises
    ------
    ArgumentError
        A text of another form, or a name that is given twice.
    """
    found: dict[str, str] = {}
    for text in texts or ():
        name, separator, value = text.rpartition("=")
        if not (name and separator and value):
            raise ArgumentError(f"{label}: {shown(text)}; expected {expected}")
        if name in found:
            raise ArgumentError(f"{label}: {shown(name)} is given twice")
        found[name] = value
    return found


def sizes(label: str, texts: list[str] | None) -> dict[str, int]:
    """What ``--dim`` says: sizes by name.

    Raises
    ------
    ArgumentError
        A text that is not NAME=SIZE, or a size that is no integer of 0 or above.
    """
    return {name: integer(f"{label}: {shown(name)}", value, 0) for name, value in named(label, texts).items()}
