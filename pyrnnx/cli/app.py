"""The Typer application: the table of commands, and the decorator that registers one."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from pyrnnx._version import __version__
from pyrnnx.cli.output import Result
from pyrnnx.errors import PyrnnxError

# The line of each command in the help of all, in its order. A module is imported when its command is asked for.
COMMANDS = {
    "inspect": "Show the inputs, outputs and recurrent layers of a model, and which engine runs each part, and why.",
    "run": "Run a model, and show its outputs and times.",
    "score": ("Run a model on every item of a large source, in several processes or on a Dask cluster."),
    "compare": "Compare two models or layers: their conventions and their numbers.",
    "check": "Show whether a model's outputs are right, how fast it is beside other runtimes, and whether to change.",
    "convert": "Write a model, a recurrent layer of one, or weights as ONNX or as OpenVINO IR.",
    "bench": "Time a model or an operator in pyrnnx and in the installed peers: ONNX Runtime, OpenVINO, PyTorch.",
    "conformance": (
        "Run cases of the recurrent operators in runtimes, and report which results are right, wrong or missing."
    ),
    "config": "Show the engine, instruction sets and threads of this machine, and the versions of packages.",
}
_STATUSES = (
    "Exit status: 0 success; of two things compared: the same; 1 they differ, or a check failed; 2 an error: an input "
    "or option is rejected, or a result cannot be written; 130 interrupted; 141 the reader of the output has closed it."
)
_registered: dict[str, Any] = {}  # Typer's commands by name


class _Group(TyperGroup):
    """Group of all commands, of which each is imported only when it is invoked."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {name: TyperCommand(name, short_help=line) for name, line in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Import a command, and return it."""
        name = args[0]
        if name in COMMANDS:
            import_module(f"pyrnnx.cli.commands.{name}")
            self.commands[name] = _registered[name]
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="pyrnnx",
    cls=_Group,
    help="Recurrent operators of ONNX and OpenVINO on a CPU.",
    epilog=_STATUSES,
    rich_markup_mode=None,  # plain help does not take the time to import Rich
    context_settings={"help_option_names": ["-h", "--help"]},
)


def command(
    name: str, *examples: str, notes: Sequence[str] = ()
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Return a decorator that registers a function as the command `name`.

    Typer reads its annotations, and shows its docstring as help, then the notes, then the examples. An error that has
    the name of a parameter begins with the option of that parameter.
    """

    def register(function: Callable[..., Result]) -> Callable[..., Result]:
        @functools.wraps(function)
        def call(**arguments: Any) -> tuple[Result, bool]:
            try:
                return function(**arguments), arguments.get("as_json", False)
            except PyrnnxError as error:
                option = options.get(error.argument)
                if option is None:
                    raise
                raise type(error)(f"{option}: {error}") from error

        lines = [*notes, *(f"Example: {example}" for example in examples)]
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        epilog = "\n\n".join(lines)  # only an empty line breaks a line
        single.command(name, short_help=COMMANDS[name], epilog=epilog)(call)
        built: Any = typer.main.get_command(single)
        options = {parameter.name: parameter.opts[0] for parameter in built.params}
        _registered[name] = built
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


group: Any = typer.main.get_command(app)
