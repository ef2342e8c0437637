"""The Typer application: its options, and how a command is put into it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from pyrnnx._version import __version__
from pyrnnx.cli.result import Result
from pyrnnx.cli.status import MEANINGS

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
    """A command with its arguments, parsed and not yet run: what it raises does not pass through Typer."""

    function: Callable[..., Result]
    arguments: dict[str, Any]

    @property
    def as_json(self) -> bool:
        """Whether ``--json``, of `pyrnnx.cli.arguments`, was given."""
        return self.arguments.get("as_json") is True

    def run(self) -> Result:
        return self.function(**self.arguments)


def command(
    name: str, *examples: str, notes: Sequence[str] = ()
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Put a function into the application as the command `name`.

    Its parameters are annotated as Typer reads them, its docstring is the help. It imports what it needs when it runs:
    the modules of all commands are imported for ``pyrnnx --help``.

    Parameters
    ----------
    *examples : str
        Command lines, which end its help.
    notes : sequence of str
        What stands between help and examples, a paragraph each.
    """

    def put(function: Callable[..., Result]) -> Callable[..., Result]:
        @functools.wraps(function)
        def call(**arguments: Any) -> Call:
            return Call(function, arguments)

        lines = [*notes, *(f"Example: {one}" for one in examples)]
        # Typer reads markup here, and takes one line break for none.
        app.command(name, epilog="\n\n".join(lines).replace("[", r"\["))(call)
        return function

    return put


def _show_version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error. May stand behind a command, too.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Of all commands; `pyrnnx.cli.entry` looks for --debug itself."""
