"""The Typer application: its options, and the decorator that registers commands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from pyrnnx._version import __version__
from pyrnnx.cli.options import OPTIONS, with_options
from pyrnnx.cli.result import Result
from pyrnnx.cli.status import MEANINGS
from pyrnnx.errors import PyrnnxError

_STATUSES = "; ".join(f"{int(status)} {meaning}" for status, meaning in MEANINGS.items())
EPILOG = f"Exit status: {_STATUSES}."

app = typer.Typer(
    name="pyrnnx",
    help="Recurrent operators of ONNX and OpenVINO on a CPU.",
    epilog=EPILOG,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@dataclass(frozen=True)
class Call:
    """A parsed command, not run inside Typer so that Typer does not handle its errors."""

    function: Callable[..., Result]
    arguments: dict[str, Any]
    options: Mapping[str, str]  # options of the command by the names of Python's arguments

    @property
    def as_json(self) -> bool:
        """Return whether the option ``--json`` is set."""
        return self.arguments.get("as_json") is True

    def run(self) -> Result:
        """Run the command; its errors name options in place of Python's arguments."""
        try:
            return self.function(**self.arguments)
        except PyrnnxError as error:
            message = with_options(str(error), self.options)
            if message == str(error):
                raise
            raise type(error)(message) from error


def command(
    name: str, *examples: str, notes: Sequence[str] = (), options: Mapping[str, str] = OPTIONS
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Return a decorator that registers a function as the command `name`.

    Typer reads its annotations, and shows its docstring as help. Its line in the help of all commands is in
    `pyrnnx.cli.commands`.

    Parameters
    ----------
    *examples : str
        Command lines at the end of the help.
    notes : sequence of str
        Paragraphs between help and examples.
    options : mapping
        Options by the names that arguments have in the messages of Python functions.
    """

    def register(function: Callable[..., Result]) -> Callable[..., Result]:
        @functools.wraps(function)
        def call(**arguments: Any) -> Call:
            return Call(function, arguments, options)

        lines = [*notes, *(f"Example: {example}" for example in examples)]
        # Typer reads markup here, and needs an empty line to break a line.
        app.command(name, epilog="\n\n".join(lines).replace("[", r"\["))(call)
        return function

    return register


def _show_version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error. Also allowed after a command.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Declare the options of all commands; `pyrnnx.cli.entry` handles --debug."""
