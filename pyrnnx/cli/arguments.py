"""Arguments that several commands share, and texts NAME=VALUE."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated

import typer

from pyrnnx.errors import ArgumentError, shown

MODEL_FILE = "an .onnx model, an OpenVINO .xml model, or an .xml file with one recurrent <layer>"


def integer(least: int) -> Callable[[str], int]:
    """Return a parser of integers from `least` on, whose error shows the text, unlike those of Typer."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:  # also for more digits than Python reads
            value = least - 1
        if value < least:
            raise typer.BadParameter(f"{shown(text)}; expected an integer, {least} or above")
        return value

    return parse


def number(text: str) -> float:
    """Return a text as a finite number, 0 or above."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise typer.BadParameter(f"{shown(text)}; expected a finite number, 0 or above")
    return value


ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help=f"{MODEL_FILE}.")]
Json = Annotated[bool, typer.Option("--json", help="Write the result as JSON.")]
Seed = Annotated[int, typer.Option("--seed", metavar="INTEGER", parser=integer(0), help="Seed of the random inputs.")]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=FILE.npy",
        help="NAME=FILE.npy, NAME=NUMBER, or FILE.npz with arrays by name; repeatable.",
    ),
]
_TOLERANCE = "Numbers are the same if abs(a - b) <= atol + rtol * abs(b). Default: by the type of the output."
Atol = Annotated[float | None, typer.Option("--atol", metavar="NUMBER", parser=number, help=_TOLERANCE)]
Rtol = Annotated[float | None, typer.Option("--rtol", metavar="NUMBER", parser=number, help=_TOLERANCE)]
Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="NAME=SIZE", help="Size of a symbolic dimension; repeatable."),
]


def named(label: str, texts: list[str] | None, expected: str = "NAME=SIZE") -> dict[str, str]:
    """Return texts NAME=VALUE as a dict; split at the last "=", because names may contain one."""
    values: dict[str, str] = {}
    for text in texts or ():
        name, separator, value = text.rpartition("=")
        if not (name and separator and value):
            raise ArgumentError(f"{label}: {shown(text)}; expected {expected}")
        if name in values:
            raise ArgumentError(f"{label}: {shown(name)} is given twice; expected it once")
        values[name] = value
    return values


def sizes(label: str, texts: list[str] | None) -> dict[str, int]:
    """Return the values of ``--dim`` as sizes by name."""
    values = named(label, texts)
    for name, text in values.items():
        if not (text.isdecimal() and len(text) < 20):
            raise ArgumentError(f"{label}: {shown(name)} is {shown(text)}; expected an integer, 0 or above")
    return {name: int(text) for name, text in values.items()}
