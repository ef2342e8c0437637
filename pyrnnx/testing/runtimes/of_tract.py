"""Rust's tract as a runtime."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pyrnnx.testing.cases import Case
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes.base import Outputs, PackageRuntime


class Tract(PackageRuntime):
    """Sonos' inference engine, on a model of one node."""

    name = package = "tract"

    def load(self) -> None:
        importlib.import_module("tract")
        importlib.import_module("pyrnnx.testing.onnx_models")

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        import tract

        from pyrnnx.testing.onnx_models import make_model

        with tempfile.TemporaryDirectory() as folder:  # it reads files only
            path = Path(folder, "model.onnx")
            path.write_bytes(make_model(case, arrays).SerializeToString())
            try:
                model = tract.onnx().load(path).into_model()
                names = [model.input_name(place) for place in range(model.input_count())]
                outputs = model.into_runnable().run([arrays[name] for name in names])
            except tract.TractError as error:  # with a list of causes, and of the functions it was in
                raise RuntimeError(str(error).partition("Stack backtrace")[0]) from None
        return tuple(output.to_numpy() for output in outputs)
