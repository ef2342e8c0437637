"""Public names: `dir` of a package has its `__all__`; a model has the names that its callers need."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from rows import each_row

import pyrnnx

EXAMPLES = Path(__file__).parents[1] / "examples"
PACKAGES = (
    "pyrnnx",
    "pyrnnx.comparison",
    "pyrnnx.frontends",
    "pyrnnx.frontends.keras",
    "pyrnnx.frontends.onnx",
    "pyrnnx.frontends.openvino",
    "pyrnnx.frontends.torch",
    "pyrnnx.onnxruntime",
    "pyrnnx.scoring",
    "pyrnnx.testing",
    "pyrnnx.testing.cases",
    "pyrnnx.testing.conformance",
    "pyrnnx.testing.models",
    "pyrnnx.reference",
    "pyrnnx.testing.runtimes",
    "pyrnnx.testing.same",
)
MODEL = {"inputs", "label", "layers", "outputs", "plan", "run", "stream"}


@each_row("name", PACKAGES)
def test_packages_show_what_they_export(name: str) -> None:
    if name == "pyrnnx.onnxruntime":
        pytest.importorskip("onnxruntime")
    package = importlib.import_module(name)
    assert set(package.__all__) <= set(dir(package))
    assert all(hasattr(package, exported) for exported in package.__all__)


def test_models_show_what_callers_need() -> None:
    model = pyrnnx.load(EXAMPLES / "small_rnn.onnx")
    assert {name for name in dir(model) if not name.startswith("_")} == MODEL | {"proto", "session_options"}
