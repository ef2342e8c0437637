"""A model or a layer in pyrnnx and in the installed runtimes, and which of them are right."""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx.comparison.model_runs import model_label
from pyrnnx.comparison.numbers import deviation
from pyrnnx.conventions import OUTPUTS
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shortened, shown
from pyrnnx.frontends.onnx.schemas import DEFAULT_OPSET
from pyrnnx.load import load
from pyrnnx.model import Model
from pyrnnx.testing.models.alone import OLDEST_OPSET, AloneModel, write_alone
from pyrnnx.testing.models.calls import run_call
from pyrnnx.testing.models.layer_runs import LayerRun, layer_runs, single_run
from pyrnnx.testing.numbers import Array, long_tolerance
from pyrnnx.testing.runtimes import Execution
from pyrnnx.testing.runtimes.models import MODEL_RUNTIMES, ModelCase, ModelRuntime, run_models

TIMEOUT = 300.0  # seconds for each run of a model
FAILURES = ("differs", "crashed", "timed out")
OWN = "pyrnnx"
_CALLED_FROM = re.compile(r"Exception from \S+?:\d+: ?")  # what OpenVINO puts before its reason, for each caller


@dataclass(frozen=True)
class Judged:
    """A runtime's outputs beside others: of a model beside those of pyrnnx, of a layer beside the oracle's.

    Attributes
    ----------
    status : str
        "agrees", "differs", "refuses", "crashed" or "timed out".
    largest : float
        The largest absolute difference; infinity where shapes, kinds or NaN differ, NaN where nothing was compared.
    output : str
        The first output that is beyond the tolerance, else "".
    detail : str
        Why it was not run, in one line.
    differences : mapping
        The largest of each output.
    """

    status: str
    largest: float = math.nan
    output: str = ""
    detail: str = ""
    differences: Mapping[str, float] = field(default_factory=dict)

    @property
    def right(self) -> bool:
        return self.status == "agrees"

    def to_dict(self) -> dict[str, Any]:
        return dict(vars(self)) | {"differences": dict(self.differences)}


@dataclass(frozen=True)
class RuntimeCheck:
    """One runtime.

    Attributes
    ----------
    name, version : str
    outputs : Judged
        Of the whole model, beside pyrnnx.
    verdict : str
        In one line.
    failed : bool
        Whether its outputs differ from those of pyrnnx, or it died.
    """

    name: str
    version: str
    outputs: Judged
    verdict: str

    @property
    def failed(self) -> bool:
        return self.outputs.status in FAILURES


@dataclass(frozen=True)
class LayerCheck:
    """One recurrent layer of the model.

    Attributes
    ----------
    name, label : str
    judged : mapping
        By the name of pyrnnx and of each runtime, beside the oracle: pyrnnx as the model ran it, the others as they run
        the layer alone, on what it took in the model.
    problem : str
        Why it was not looked at, else "".
    """

    name: str
    label: str
    judged: Mapping[str, Judged]
    problem: str = ""


@dataclass(frozen=True)
class ModelCheck:
    """What `check_model` found.

    Attributes
    ----------
    model : str
    input_shapes : mapping
    runtimes : tuple of RuntimeCheck
    layers : tuple of LayerCheck
    """

    model: str
    input_shapes: Mapping[str, tuple[int, ...]]
    runtimes: tuple[RuntimeCheck, ...]
    layers: tuple[LayerCheck, ...]

    @property
    def wrong_layers(self) -> list[LayerCheck]:
        """Layers in which pyrnnx is away from the oracle."""
        return [one for one in self.layers if one.judged and not one.judged[OWN].right]

    @property
    def failed(self) -> bool:
        """Whether a runtime and pyrnnx differ, a runtime died, or pyrnnx is away from the oracle."""
        return bool(self.wrong_layers) or any(one.failed for one in self.runtimes)

    def to_dict(self) -> dict[str, Any]:
        """All of it, for JSON but for numbers that are not finite."""
        return {
            "model": self.model,
            "input_shapes": {name: list(shape) for name, shape in self.input_shapes.items()},
            "agree": not self.failed,
            "runtimes": {
                one.name: {"version": one.version, "verdict": one.verdict, **one.outputs.to_dict()}
                for one in self.runtimes
            },
            "layers": {
                one.name: {
                    "label": one.label,
                    "problem": one.problem,
                    "oracle": {name: judged.to_dict() for name, judged in one.judged.items()},
                }
                for one in self.layers
            },
        }


@dataclass(frozen=True)
class Allowed:
    """abs(a - b) <= atol + rtol * abs(b); None: `long_tolerance` of the output."""

    atol: float | None = None
    rtol: float | None = None

    def judge(self, given: Mapping[str, Any], wanted: Mapping[str, Any], dtype: str | None = None) -> Judged:
        """Outputs by name beside what they should be; those that were not given differ."""
        differences: dict[str, float] = {}
        first = ""
        for name, one in wanted.items():
            array = np.asarray(one)
            found = deviation(np.asarray(given[name]), array) if name in given else None
            differences[name] = math.inf if found is None else found.largest
            atol = long_tolerance(array, dtype) if self.atol is None and self.rtol is None else self.atol or 0.0
            if not first and (found is None or not found.within(atol, self.rtol or 0.0)):
                first = name
        numbers = [one for one in differences.values() if not math.isnan(one)]
        return Judged("differs" if first else "agrees", max(numbers, default=math.nan), first, "", differences)


def check_model(
    path: str | os.PathLike[str],
    against: Sequence[str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    timeout: float = TIMEOUT,
    progress: Callable[[str], None] = lambda text: None,
) -> ModelCheck:
    """Run a model or layer in pyrnnx and in other runtimes, and its recurrent layers in the oracle, too.

    Each runtime has a process of its own, which may die or hang. Every recurrent layer, with what it took in pyrnnx's
    call of the model, is also run by each runtime alone, as a model of one layer: so the oracle tells which of them
    computes it otherwise.

    Parameters
    ----------
    path : path
        What `load` takes: an .onnx model, an IR, or an .xml file with one recurrent layer.
    against : sequence of str, optional
        "onnxruntime", "openvino". Default: those that are installed.
    inputs : mapping, optional
        Arrays by the names of the model's inputs, or of a layer by ONNX's names and axes. Default: random ones.
    seed : int
        Of random inputs.
    dims : mapping, optional
        Sizes of symbolic dimensions of the inputs, by their names.
    atol, rtol : float, optional
        How far two numbers may be apart: abs(a - b) <= atol + rtol * abs(b); the one that is not given is then 0.
        Default: by the dtype of the output,
        `pyrnnx.testing.numbers.LONG_TOLERANCES` times its largest magnitude, if that is above 1.
    timeout : float
        Seconds for each run.
    progress : callable
        Is told, in a short line, what is done now.

    Returns
    -------
    ModelCheck

    Raises
    ------
    PyrnnxError
        A model that cannot be read or run; a runtime that is not known, or not installed; inputs that do not fit.
    """
    runtimes, allowed = _runtimes(against), Allowed(atol, rtol)
    model = load(path)
    progress(f"{OWN}: {Path(path).name}")
    with tempfile.TemporaryDirectory(prefix="pyrnnx-") as folder:
        if isinstance(model, Model):
            whole: AloneModel | None = None
            given, expected = run_call(model, inputs, seed, dims or {}, "check")
            runs = layer_runs(model, given)
            case = ModelCase(printable(Path(path).name), Path(path).absolute())
        elif dims:
            raise ArgumentError(f"check: dims was given with {model.label}, a single layer; expected a whole model")
        else:
            runs = [single_run(model, inputs, seed)]
            whole = write_alone(runs[0], Path(folder, "layer.xml"), static=True)
            case, given = whole.case, dict(whole.inputs)
            expected = dict(runs[0].outputs or {})
        alone = _alone_models(model, runs, Path(path).suffix.lower(), Path(folder)) if whole is None else {0: whole}
        found: dict[str, tuple[Execution, dict[int, Execution]]] = {}
        for runtime in runtimes:
            progress(f"{runtime.name}: {Path(path).name}")
            calls = [(case, given)] if whole is None else []
            calls += [(one.case, one.inputs) for one in alone.values()]
            executions = run_models(runtime, calls, timeout)
            found[runtime.name] = executions[0], dict(zip(alone, executions[len(calls) - len(alone) :], strict=True))
        layers = tuple(_layer_check(run, place, alone, found, allowed) for place, run in enumerate(runs))
    checks = []
    for runtime in runtimes:
        execution = found[runtime.name][0]
        outputs = execution.outputs if whole is None else tuple(whole.canonical(execution.outputs).values())
        judged = _status(execution) or allowed.judge(dict(zip(expected, outputs, strict=False)), expected)
        verdict = _verdict(runtime.name, judged, layers)
        checks.append(RuntimeCheck(runtime.name, runtime.version(), judged, verdict))
    label = model_label(model) if isinstance(model, Model) else printable(model.label)
    return ModelCheck(label, {name: np.shape(one) for name, one in given.items()}, tuple(checks), layers)


def _runtimes(against: Sequence[str] | None) -> list[ModelRuntime]:
    if against is None:
        return [one for one in MODEL_RUNTIMES.values() if one.installed()]
    for name in against:
        if name not in MODEL_RUNTIMES:
            raise ArgumentError(f"check: against has {shown(name)}; expected names out of {', '.join(MODEL_RUNTIMES)}")
        if not MODEL_RUNTIMES[name].installed():
            raise ArgumentError(f"check: {name} is not installed")
    return [MODEL_RUNTIMES[name] for name in dict.fromkeys(against)]


def _alone_models(model: Any, runs: Sequence[LayerRun], suffix: str, folder: Path) -> dict[int, AloneModel]:
    """Models of the layers that the oracle can judge, by their places; with fixed shapes where the model has them."""
    static = all(isinstance(size, int) for info in model.inputs for size in info.shape or (None,))
    opset, nodes = DEFAULT_OPSET, dict[str, Any]()
    if suffix == ".onnx":
        nodes = _nodes(model)
        domains = {one.domain: one.version for one in model.proto.opset_import}
        opset = min(max(domains.get("", DEFAULT_OPSET), OLDEST_OPSET), DEFAULT_OPSET)
    found = {}
    for place, run in enumerate(runs):
        if run.expected:
            try:
                target, node = folder / f"{place}{suffix}", nodes.get(run.name)
                found[place] = write_alone(run, target, static=static, opset=opset, node=node)
            except PyrnnxError:  # what IR cannot express; the whole model could
                continue
    return found


def _nodes(model: Any) -> dict[str, Any]:
    """The nodes of layers at the top level, as the file has them; not those that came out of a function."""
    by_output = {name: node for node in model.proto.graph.node for name in node.output if name}
    values = model._layer_values()
    outputs = {name: [one.names[0] for key, one in each.items() if key in OUTPUTS] for name, each in values.items()}
    return {name: by_output[each[0]] for name, each in outputs.items() if each and each[0] in by_output}


def _status(execution: Execution) -> Judged | None:
    """Of one that gave no outputs."""
    if execution.status == "ran":
        return None
    detail = _CALLED_FROM.sub("", printable(execution.detail))
    return Judged({"refused": "refuses"}.get(execution.status, execution.status), detail=detail)


def _layer_check(
    run: LayerRun,
    place: int,
    alone: Mapping[int, AloneModel],
    found: Mapping[str, tuple[Execution, Mapping[int, Execution]]],
    allowed: Allowed,
) -> LayerCheck:
    if not run.expected or run.layer is None or run.outputs is None:
        return LayerCheck(run.name, run.label, {}, printable(run.problem))
    dtype, expected = run.layer.dtype.name, run.expected
    judged = {OWN: allowed.judge(run.outputs, {name: expected[name] for name in run.outputs}, dtype)}
    for name, (_, executions) in found.items():
        if place in alone:
            execution = executions[place]
            outputs: Mapping[str, Array] = alone[place].canonical(execution.outputs)
            wanted = {one: expected[one] for one in alone[place].axes}  # a cell has no Y
            judged[name] = _status(execution) or allowed.judge(outputs, wanted, dtype)
    return LayerCheck(run.name, run.label, judged)


def _verdict(name: str, judged: Judged, layers: Sequence[LayerCheck]) -> str:
    """What is to be believed, in one line."""
    theirs = [_where(one, name) for one in layers if name in one.judged and one.judged[name].status == "differs"]
    ours = [_where(one, OWN) for one in layers if one.judged and not one.judged[OWN].right]
    if judged.status not in ("agrees", "differs"):
        return shortened(f"{judged.status}: {judged.detail}")
    if judged.right:
        return f"agrees, but alone its {theirs[0]} is away from the oracle" if theirs else "agrees"
    if theirs or ours:
        if theirs and ours:
            return f"differs: the oracle sides with neither ({theirs[0]}, and of pyrnnx {ours[0]})"
        return f"differs: the oracle sides with {'pyrnnx' if theirs else name} ({(theirs or ours)[0]})"
    if any(name in one.judged and one.judged[name].right for one in layers):
        return "differs, but each recurrent layer alone agrees with the oracle: what lies around them differs"
    return "differs; the oracle can tell of none of its layers"


def _where(layer: LayerCheck, name: str) -> str:
    """A layer, and the first output that is away from the oracle."""
    return f"layer {shown(layer.name)}, {layer.judged[name].output}"
