"""Conversion of models for ONNX Runtime sessions: recurrent nodes become operators of pyrnnx."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.extras import needs
from pyrnnx._internal.writing import write_files
from pyrnnx.cli.conversion import Options
from pyrnnx.cli.verification import Compared, Verified, verified
from pyrnnx.comparison.model_runs import try_alone
from pyrnnx.errors import ArgumentError, shown
from pyrnnx.models.model import Model

RUNTIMES = ("onnxruntime",)


def check(source: str, target: Path, runtime: str, options: Options) -> None:
    """Raise if the arguments do not fit this conversion.

    Raises
    ------
    ArgumentError
        Another runtime; a source or a target without the suffix .onnx; options of other conversions; missing ONNX
        Runtime.
    """
    if runtime not in RUNTIMES:
        raise ArgumentError(f"convert: --for is {shown(runtime)}; expected one of {', '.join(RUNTIMES)}")
    if Path(source).suffix.lower() != ".onnx" or target.suffix != ".onnx":
        raise ArgumentError(
            f"convert: --for {runtime} does not apply to {shown(source)} and {shown(str(target))}; "
            "expected two names that end in .onnx"
        )
    for field in fields(options):
        if getattr(options, field.name):
            raise ArgumentError(
                f"convert: --{field.name.replace('_', '-')} does not apply with --for {runtime}; expected it left out"
            )
    try:
        import pyrnnx.onnxruntime  # noqa: F401
    except ImportError as error:
        raise ArgumentError(needs(f"convert: --for {runtime}", "onnxruntime", "onnx")) from error


def write(source: str, target: Path) -> None:
    """Write a model whose recurrent nodes are operators of pyrnnx.

    Raises
    ------
    PyrnnxError
        A broken model.
    """
    from pyrnnx.onnxruntime import rewrite

    write_files(source, {target: [rewrite(source).SerializeToString()]})


def verify(source: Model, target: Path, arrays: Mapping[str, AnyArray]) -> Verified:
    """Compare the outputs of a session of ONNX Runtime with the source's; inputs that are not in `arrays` are random.

    Raises
    ------
    PyrnnxError
        The source accepts none of the random inputs.
    """
    import onnxruntime

    from pyrnnx.onnxruntime import library

    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(library())
    options.log_severity_level = 4  # errors raise
    session = onnxruntime.InferenceSession(str(target), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    tries = try_alone(
        source,
        arrays,
        0,
        {},
        "convert",
        "--input",
        lambda error: f"it does not run on random inputs of the declared sizes; pass arrays by --input: {error}",
    )

    def compared() -> Iterator[Compared]:
        for call in tries:
            results = dict(zip(names, session.run(names, call.inputs), strict=True))
            yield {name: (array, call.outputs[name]) for name, array in results.items()}, call.inputs

    return verified(compared(), tries)
