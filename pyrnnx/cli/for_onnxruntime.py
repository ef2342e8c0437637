"""Conversion of models for ONNX Runtime sessions: recurrent nodes become operators of pyrnnx."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path

from pyrnnx._internal.dtypes import AnyArray
from pyrnnx._internal.extras import needs
from pyrnnx._internal.writing import write_files
from pyrnnx.cli.conversion import Options, Verified, verified
from pyrnnx.comparison.random_inputs import Wanted, random_inputs
from pyrnnx.errors import ArgumentError, PyrnnxError, shown
from pyrnnx.load import load
from pyrnnx.models.model import Model

RUNTIMES = ("onnxruntime",)


def convert(source: str, target: Path, runtime: str, options: Options, *, no_verify: bool) -> Verified | None:
    """Write the model, and compare its outputs with the source's on random inputs.

    Raises
    ------
    PyrnnxError
        Another runtime; a source or a target without the suffix .onnx; options of other conversions; missing ONNX
        Runtime; a broken model.
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
        from pyrnnx.onnxruntime import rewrite
    except ImportError as error:
        raise ArgumentError(needs(f"convert: --for {runtime}", "onnxruntime", "onnx")) from error
    proto = rewrite(source)
    write_files(source, {target: [proto.SerializeToString()]})
    return None if no_verify else _verified(source, target)


def _verified(source: str, target: Path) -> Verified:
    """Compare the outputs of a session of ONNX Runtime with those of the loaded source."""
    import onnxruntime

    from pyrnnx.onnxruntime import library

    options, model = onnxruntime.SessionOptions(), load(source)
    options.register_custom_ops_library(library())
    options.log_severity_level = 4  # errors raise
    session = onnxruntime.InferenceSession(str(target), options, providers=["CPUExecutionProvider"])
    inputs, expected = _first_run(model)
    names = [output.name for output in session.get_outputs()]
    results = session.run(names, inputs)
    return verified({name: (array, expected[name]) for name, array in zip(names, results, strict=True)})


def _first_run(model: Model) -> tuple[dict[str, AnyArray], Mapping[str, AnyArray]]:
    """Return random inputs of the first sizes that a model accepts, and its outputs.

    Raises
    ------
    PyrnnxError
        The model accepts none of them.
    """
    infos = [Wanted(info, info) for info in model.inputs if not info.optional]
    for inputs in random_inputs(infos, 0, {}, "convert", "--no-verify"):
        with suppress(PyrnnxError):
            return inputs, model(inputs)
    raise PyrnnxError(f"convert: {model.label} accepts none of the random inputs; --no-verify skips the check")
