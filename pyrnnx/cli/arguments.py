"""Arguments that several commands share, and conversion of texts to numbers.

All arguments are declared as texts: their errors are pyrnnx's own, the same with every version of Typer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any

import typer

from pyrnnx.errors import ArgumentError, shown

MODEL_FILE = "an .onnx model, an OpenVINO .xml model, or an .xml file with one recurrent <layer>"

Json = Annotated[bool, typer.Option("--json", help="Write the result as JSON.")]
Seed = Annotated[str, typer.Option("--seed", metavar="INTEGER", help="Seed of the random inputs.")]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=FILE.npy",
        help="NAME=FILE.npy, NAME=FILE.wav, NAME=NUMBER, or FILE.npz with arrays by name; repeatable.",
    ),
]
Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="NAME=SIZE", help="Size of a symbolic dimension; repeatable."),
]


def complete_files(suffixes: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return a completer of paths: folders, and files with one of these suffixes."""

    def complete(incomplete: str) -> list[str]:
        from glob import escape, glob
        from os.path import isdir

        ends = tuple(suffixes())
        paths = sorted(glob(f"{escape(incomplete)}*"))
        return [f"{path}/" if isdir(path) else path for path in paths if isdir(path) or path.lower().endswith(ends)]

    return complete


def complete_names(choices: Callable[[], Iterable[str]], *, several: bool = False) -> Callable[[str], list[str]]:
    """Return a completer of a name, or with `several` of the last name in a comma-separated list."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        used = before.split(",")
        return [f"{before}{comma}{name}" for name in choices() if name.startswith(last) and name not in used]

    return complete


def _runtimes() -> Iterable[str]:
    """Return the names of the runtimes of single cases."""
    from pyrnnx.testing.runtimes import RUNTIMES

    return RUNTIMES


model_suffixes = complete_files(lambda: (".onnx", ".xml"))
runtime_names = complete_names(_runtimes)


def chosen_layer(layers: Mapping[Any, Any], text: str) -> Any:
    """Return the recurrent layer with the name or else the index of ``--layer``.

    Parameters
    ----------
    layers : mapping
        `Model.layers`.
    text : str
        A name, or an index in the model's order: "0" is the first, "-1" the last.

    Raises
    ------
    MissingLayerError
        The model has no such layer.
    """
    is_index = text not in layers and text.removeprefix("-").isdecimal() and len(text) < 10
    return layers[int(text) if is_index else text]


def integer(label: str, text: str, least: int | None = None) -> int:
    """Return a text as an integer.

    Parameters
    ----------
    label : str
        Command and option for the error message: "compare: --seed".
    text : str
    least : int, optional
        Minimum.

    Raises
    ------
    ArgumentError
        The text is no integer or below the minimum.
    """
    try:
        value = int(text)
    except ValueError:  # also for more digits than Python reads
        raise ArgumentError(f"{label}: {shown(text)}; expected an integer") from None
    if least is not None and value < least:
        raise ArgumentError(f"{label} is {shown(value)}; expected an integer, {least} or above")
    return value


def number(label: str, text: str, what: str = "number of 0 or above", *, above: bool = False) -> float:
    """Return a text as a finite number of 0 or above; with `above`, above 0.

    Raises
    ------
    ArgumentError
        Any other text: "... is no `what`".
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (value > 0 if above else value >= 0) or value == math.inf:
        raise ArgumentError(f"{label}: {shown(text)} is no {what}")
    return value


def named(label: str, texts: list[str] | None, expected: str = "NAME=SIZE") -> dict[str, str]:
    """Return texts NAME=VALUE as a dict; split at the last "=", because names may contain one.

    Raises
    ------
    ArgumentError
        A text of another form; a name that occurs twice.
    """
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
    """Return the values of ``--dim`` as sizes by name.

    Raises
    ------
    ArgumentError
        A text that is not NAME=SIZE; a size that is no integer of 0 or above.
    """
    return {name: integer(f"{label}: {shown(name)}", value, 0) for name, value in named(label, texts).items()}
