"""Runtimes of whole models: pyrnnx, ONNX Runtime and OpenVINO."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from xml.sax.saxutils import quoteattr

import numpy as np

from pyrnnx.testing.cases import INPUTS, OUTPUTS, Case
from pyrnnx.testing.numbers import Array, numpy_dtype
from pyrnnx.testing.runtimes.base import Outputs, PackageRuntime
from pyrnnx.testing.runtimes.execution import Execution, execute

Shapes = Mapping[str, tuple[int, ...]]
Run = Callable[[Mapping[str, Array]], dict[str, Array]]
FATAL = 4  # log severity: errors raise, and warnings are about shapes that files declare wrongly
ELEMENT_TYPES = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "int32": "i32",
    "int64": "i64",
}
PRECISIONS = {"f32": "FP32", "f64": "FP64", "f16": "FP16", "bf16": "BF16", "i32": "I32", "i64": "I64"}
_ACTIVATIONS = {"RNN": ["tanh"], "GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"]}


def pyrnnx_run(source: Path | bytes, threads: int) -> Run:
    """Return a loaded model's call; `set_num_threads` is that of the caller's process."""
    pyrnnx = importlib.import_module("pyrnnx")
    pyrnnx.set_num_threads(threads)
    model: Run = pyrnnx.load(source)
    return model


def onnxruntime_run(source: Path | bytes, threads: int) -> Run:
    """Return a session's call on the CPU; an .xml is converted by `to_onnx` first."""
    onnxruntime = importlib.import_module("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.log_severity_level = FATAL
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    if isinstance(source, Path) and source.suffix.lower() == ".xml":
        source = importlib.import_module("pyrnnx.frontends.openvino").to_onnx(source).SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(None, dict(inputs)), strict=True))


def openvino_run(source: Path | bytes, threads: int, shapes: Shapes | None = None) -> Run:
    """Return a call of the CPU plugin in float32; results are valid until the next call.

    `shapes` sets input shapes by name; the plugin ignores sequence lengths if X is dynamic. Inputs that the plugin
    removed because nothing depends on them are left out. Outputs are named by position.
    """
    openvino = importlib.import_module("openvino")
    options = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "ENABLE_CPU_PINNING": False,
    }
    core = openvino.Core()
    model = core.read_model(source)
    if shapes:
        model.reshape({port: shapes[name] for port in model.inputs for name in _names(port) if name in shapes})
    compiled = core.compile_model(model, "CPU", options)
    request = compiled.create_infer_request()
    places = {name: place for place, port in enumerate(compiled.inputs) for name in _names(port)}
    bits = [port.get_element_type() == openvino.Type.bf16 for port in (*compiled.inputs, *compiled.outputs)]
    of_outputs = bits[len(compiled.inputs) :]

    def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
        used = {places[name]: array for name, array in inputs.items() if name in places}
        results = request.infer(used, share_inputs=True, share_outputs=True)
        return {str(place): array for place, array in enumerate(results.values())}

    def run_bfloat16(inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Exchange bfloat16, which OpenVINO's arrays do not have, as tensors of as many bits."""
        tensors = {
            name: openvino.Tensor(array.view(np.float16), array.shape, openvino.Type.bf16)
            if array.dtype.name == "bfloat16"
            else array
            for name, array in inputs.items()
        }
        return {
            name: array.view(numpy_dtype("bfloat16")) if is_bfloat16 else array
            for (name, array), is_bfloat16 in zip(run(tensors).items(), of_outputs, strict=True)
        }

    return run_bfloat16 if any(bits) else run


def _names(port: Any) -> set[str]:
    """Return a tensor's names; a Parameter of an IR may have only its layer's."""
    return {*port.get_names(), port.get_node().get_friendly_name()}


# By the names that `RUNTIMES` has for them.
MODEL_RUNS: Mapping[str, Callable[[Path | bytes, int], Run]] = {
    "pyrnnx": pyrnnx_run,
    "onnxruntime": onnxruntime_run,
    "openvino": openvino_run,
}


@dataclass(frozen=True, eq=False)
class ModelCase:
    """A file, as `execute` hands it to a `ModelPackage` with the inputs of one call by name.

    `shapes` are those of inputs that are dynamic in the file, and are not to be.
    """

    name: str
    path: Path
    shapes: Shapes | None = None
    family = "file"


class ModelPackage(PackageRuntime):
    """A package that runs models on one thread: files, or a case as a model whose inputs are all its arrays."""

    families: ClassVar[tuple[str, ...]] = ("ONNX",)

    def supports(self, case: Any) -> bool:
        return case.family in self.families

    def load(self) -> None:
        importlib.import_module(self.package)
        importlib.import_module("pyrnnx.testing.onnx_models")

    def model(self, case: Case, arrays: Mapping[str, Array]) -> bytes:
        """Return an ONNX model of one node, or of an OpenVINO operation an IR of one layer."""
        if case.family == "OpenVINO":
            return make_ir(case, arrays).encode()
        from pyrnnx.testing.onnx_models import make_model

        return make_model(case, arrays).SerializeToString()

    def run(self, case: Any, arrays: Mapping[str, Array]) -> Outputs:
        is_file = isinstance(case, ModelCase)
        run = self.open(case.path, case.shapes) if is_file else self.open(self.model(case, arrays))
        return tuple(np.array(array) for array in run(arrays).values())

    def open(self, source: Path | bytes, shapes: Shapes | None = None) -> Run:
        """Return a call of a model; only OpenVINO needs shapes."""
        return MODEL_RUNS[self.package](source, 1)


class PyrnnxModels(ModelPackage):
    """`pyrnnx.load`, as of any whole model."""

    name, package, families = "pyrnnx.load", "pyrnnx", ("ONNX", "OpenVINO", "file")


class OnnxRuntime(ModelPackage):
    """A session on the CPU; IRs as `to_onnx` writes them."""

    name, package, families = "ONNX Runtime", "onnxruntime", ("ONNX", "file")


class OpenVINO(ModelPackage):
    """OpenVINO's CPU plugin: ONNX models by its import."""

    name, package, families = "OpenVINO", "openvino", ("ONNX", "OpenVINO", "file")

    def load(self) -> None:
        super().load()
        importlib.import_module("openvino").Core().get_property("CPU", "FULL_DEVICE_NAME")  # loads the plugin

    def open(self, source: Path | bytes, shapes: Shapes | None = None) -> Run:
        return openvino_run(source, 1, shapes)


MODEL_RUNTIMES: Mapping[str, ModelPackage] = {runtime.package: runtime for runtime in (OnnxRuntime(), OpenVINO())}


def run_models(
    runtime: ModelPackage, calls: Sequence[tuple[ModelCase, Mapping[str, Array]]], timeout: float
) -> list[Execution]:
    """Run each model on its arrays in a process that may die or hang, and return each outcome.

    Raises
    ------
    ArgumentError
        As of `execute`.
    """
    arrays: dict[Any, Mapping[str, Array]] = dict(calls)
    cases: list[Any] = list(arrays)
    return list(execute(runtime, cases, timeout=timeout, arrays=arrays.__getitem__))


def make_ir(case: Case, arrays: Mapping[str, Array]) -> str:
    """Return the text of an IR without .bin, whose inputs are all arrays of the case.

    hidden_size and activations are always written, because OpenVINO cannot compile a sequence without them.
    """
    operation, version = case.operator.split("-")
    names, results = [name for name in INPUTS[case.operator] if name in arrays], OUTPUTS[case.operator]
    types = {name: ELEMENT_TYPES[array.dtype.name] for name, array in arrays.items()}
    types |= dict.fromkeys(results, ELEMENT_TYPES[case.dtype])
    shapes: dict[str, Sequence[int]] = {**case.shapes(), **{name: array.shape for name, array in arrays.items()}}

    def ports(tag: str, named: Sequence[str], first: int = 0) -> str:
        text = []
        for number, name in enumerate(named, first):
            called = f' names="{name}"' if tag == "output" else ""
            dims = "".join(f"<dim>{size}</dim>" for size in shapes[name])
            text.append(f'<port id="{number}" precision="{PRECISIONS[types[name]]}"{called}>{dims}</port>')
        return f"<{tag}>{''.join(text)}</{tag}>"

    layers, edges, layer = [], [], len(names)
    for number, name in enumerate(names):
        shape = ",".join(map(str, shapes[name]))
        data = f'<data shape="{shape}" element_type="{types[name]}"/>'
        head = f'<layer id="{number}" name="{name}" type="Parameter" version="opset1">'
        layers.append(f"{head}{data}{ports('output', [name])}</layer>")
        edges.append((number, 0, layer, number))
    attributes = {"hidden_size": case.H, "activations": _ACTIVATIONS[case.cell], **case.attributes}
    data = " ".join(f"{key}={quoteattr(_written(value))}" for key, value in attributes.items())
    layers.append(
        f'<layer id="{layer}" name={quoteattr(case.name)} type="{operation}" version="opset{version}"><data {data}/>'
        f"{ports('input', names)}{ports('output', results, layer)}</layer>"
    )
    for number, name in enumerate(results, layer + 1):
        head = f'<layer id="{number}" name="{name}/result" type="Result" version="opset1">'
        layers.append(f"{head}{ports('input', [name])}</layer>")
        edges.append((layer, number - 1, number, 0))
    wires = (f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>' for a, b, c, d in edges)
    sections = ("<layers>", *layers, "</layers>", "<edges>", *wires, "</edges>")
    return "\n".join((f'<net name={quoteattr(case.name)} version="11">', *sections, "</net>", ""))


def _written(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
