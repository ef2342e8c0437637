"""Check of a model or layer against the installed runtimes and the oracle."""

from __future__ import annotations

import math
import os
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pyrnnx.comparison.agreement import LONG, Rule, agreement
from pyrnnx.comparison.calls import label
from pyrnnx.comparison.distances import largest
from pyrnnx.comparison.layers import undecided
from pyrnnx.comparison.models.tries import unvaried
from pyrnnx.errors import ArgumentError, PyrnnxError, printable, shortened, shown
from pyrnnx.frontends.onnx.operators.layers import QuantizedLayer
from pyrnnx.load import load, read_model_or_layer
from pyrnnx.models.model import Model
from pyrnnx.testing.models.alone import AloneModel, write_alone
from pyrnnx.testing.models.calls import guessed_sizes, try_calls
from pyrnnx.testing.models.layer_runs import LayerRun, layer_runs, single_run
from pyrnnx.testing.models.quantized import ROUNDED, is_quantized
from pyrnnx.testing.runtimes import Execution
from pyrnnx.testing.runtimes.models import MODEL_RUNTIMES, ModelCase, run_models

FAILURES = ("crashed", "timed out", "differs", "not decided")
OWN = "pyrnnx"
_CALLED_FROM = re.compile(r"Exception from \S+?:\d+: ?")  # what OpenVINO puts before its reason, for each caller


@dataclass(frozen=True)
class Judged:
    """Comparison of a runtime's outputs: of a model with pyrnnx, of a layer with the oracle.

    Attributes
    ----------
    status : str
        "agrees", "differs", "not decided", "refuses", "crashed" or "timed out".
    largest : float
        The largest absolute difference; infinity where shapes, kinds or NaN differ, NaN where nothing was compared.
    output : str
        The first output that is beyond the tolerance, else "".
    detail : str
        Why the model was not run, or why it is not decided whether it agrees, in one line.
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


@dataclass(frozen=True)
class RuntimeCheck:
    """Check of one runtime: its outputs of the whole model compared with pyrnnx, and the verdict in one line."""

    name: str
    version: str
    outputs: Judged
    verdict: str

    @property
    def failed(self) -> bool:
        """True if its outputs differ from those of pyrnnx, it died, or it is not decided whether they agree."""
        return self.outputs.status in FAILURES


@dataclass(frozen=True)
class LayerCheck:
    """Check of one recurrent layer of the model.

    Attributes
    ----------
    name, label : str
    judged : mapping
        Comparisons with the oracle, by name of pyrnnx and of each runtime. pyrnnx ran the layer in the model; the
        others run it alone, on its inputs from the model.
    problem : str
        Why the layer was not checked, else "".
    alone : bool
        Whether pyrnnx, too, ran it alone, on random inputs: a call does not return values in bodies of If and loops.
    """

    name: str
    label: str
    judged: Mapping[str, Judged]
    problem: str = ""
    alone: bool = False


@dataclass(frozen=True)
class ModelCheck:
    """Result of `check_model`.

    Attributes
    ----------
    model : str
    input_shapes : mapping
        Shapes of the first call.
    runtimes : tuple of RuntimeCheck
    layers : tuple of LayerCheck
    calls : tuple of str
        Shapes of the inputs in each call, with the numbers of lengths and other small integers, in words.
    tolerance : str
        The tolerance of outputs, in words.
    guessed : mapping
        Sizes of the first call that no caller set, by dimension.
    """

    model: str
    input_shapes: Mapping[str, tuple[int, ...]]
    runtimes: tuple[RuntimeCheck, ...]
    layers: tuple[LayerCheck, ...]
    calls: tuple[str, ...] = ()
    tolerance: str = ""
    guessed: Mapping[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """True if a runtime crashed or does not agree with pyrnnx, or pyrnnx differs from the oracle."""
        return self.is_wrong or any(check.failed for check in self.runtimes)

    @property
    def is_wrong(self) -> bool:
        """True if a layer of pyrnnx differs from the oracle."""
        return any(check.judged and not check.judged[OWN].right for check in self.layers)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON values, except that numbers may be NaN or infinite."""
        return {
            "model": self.model,
            "input_shapes": {name: list(shape) for name, shape in self.input_shapes.items()},
            "guessed": dict(self.guessed),
            "calls": list(self.calls),
            "agree": not self.failed,
            "tolerance": self.tolerance,
            "runtimes": {
                check.name: {"version": check.version, "verdict": check.verdict, **asdict(check.outputs)}
                for check in self.runtimes
            },
            "layers": {
                check.name: {
                    "label": check.label,
                    "problem": check.problem,
                    "alone": check.alone,
                    "oracle": {name: asdict(judged) for name, judged in check.judged.items()},
                }
                for check in self.layers
            },
        }


def _judged(outputs: Mapping[str, Any], expected: Mapping[str, Any], rule: Rule, dtype: str | None = None) -> Judged:
    """Judge outputs by name; `dtype` is the computation's, by default that of the expected outputs."""
    arrays, right = ({name: np.asarray(array) for name, array in arrays.items()} for arrays in (outputs, expected))
    result = agreement(arrays, right, rule, *([dtype] if dtype else []))
    status = "agrees" if result.apart is None else "differs"
    return Judged(status, result.largest, result.apart or "", "", dict(result.differences))


def check_model(
    path: str | os.PathLike[str],
    against: Sequence[str] | None = None,
    inputs: Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    timeout: float = 300.0,
    progress: Callable[[str], None] = lambda text: None,
) -> ModelCheck:
    """Compare a model or layer with other runtimes, and its recurrent layers with the oracle.

    Each runtime runs in its own process, which may die or hang. A model runs on the inputs of several calls, as in
    `pyrnnx.compare`. Every runtime also runs each recurrent layer alone, on its inputs from the first of pyrnnx's calls
    of the model. So the oracle shows which runtime computes the layer wrongly. A layer in a body of If, Loop or Scan
    runs alone in pyrnnx, too, on random inputs.

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
        Tolerances: abs(a - b) <= atol + rtol * abs(b); if only one is set, the other is 0. Default: `LONG_TOLERANCES`
        of the output's dtype; 0.02 for models whose layers round to 8 bits.
    timeout : float
        Seconds for each run.
    progress : callable
        Called with a short line about each step.

    Returns
    -------
    ModelCheck

    Raises
    ------
    PyrnnxError
        A model that cannot be read or run; a runtime that is not known, or not installed; inputs that do not fit.
    """
    names = chosen("check", against, {name: runtime.installed() for name, runtime in MODEL_RUNTIMES.items()})
    model, path = read_model_or_layer(path), Path(path)
    what, suffix, is_layer = label(model), path.suffix.lower(), not isinstance(model, Model)
    progress(f"{OWN}: {path.name}")
    with tempfile.TemporaryDirectory(prefix="pyrnnx-") as folder:
        reasons: list[str] = []
        case = ModelCase(printable(path.name), path.absolute())
        if not isinstance(model, Model):  # it becomes a model, which runs with fixed shapes
            if dims:
                raise ArgumentError(f"check: dims is set for {model.label}, a single layer; expected a whole model")
            run = single_run(model, inputs, seed)
            if "X" not in (inputs or {}) and run.outputs and run.arrays:
                reasons += undecided([run.outputs], run.arrays["sequence_lens"])
            written = write_alone(run, Path(folder, "layer.xml"), static=True)
            case, inputs, model = written.case, written.inputs, load(written.case.path)
        rule = ROUNDED if is_quantized(model) else LONG
        if atol is not None or rtol is not None:
            rule = Rule(atol or 0.0, rtol or 0.0)
        tries = try_calls(model, inputs, seed, dims or {}, "check")
        calls = list(tries)
        limits = () if rule is LONG else (rule.atol, rule.rtol)
        reasons += [*tries.reasons, *unvaried(tries.spreads, *limits)]
        first = calls[0]
        runs = layer_runs(model, first.inputs)
        is_static = is_layer or all(isinstance(size, int) for info in model.inputs for size in info.shape or (None,))
        alone = _alone_models(runs, suffix, Path(folder), is_static)
        cases = [*((replace(case), call.inputs) for call in calls), *((row.case, row.inputs) for row in alone.values())]
        ran: dict[str, list[Execution]] = {}
        for runtime in (MODEL_RUNTIMES[name] for name in names):
            progress(f"{runtime.name}: {case.name}")
            ran[runtime.name] = run_models(runtime, cases, timeout)
    of_layers = {name: dict(zip(alone, executions[len(calls) :], strict=True)) for name, executions in ran.items()}
    layers = tuple(_layer_check(run, place, alone, of_layers, rule) for place, run in enumerate(runs))
    checks = []
    for runtime in (MODEL_RUNTIMES[name] for name in names):
        of_calls = []
        for call, execution in zip(calls, ran[runtime.name], strict=False):
            outputs = dict(zip(call.outputs, execution.outputs, strict=False))
            of_calls.append(_status(execution) or _judged(outputs, call.outputs, rule))
        judged = _joined(of_calls, reasons)
        checks.append(RuntimeCheck(runtime.name, runtime.version(), judged, _verdict(runtime.name, judged, layers)))
    shapes = {name: np.shape(array) for name, array in first.inputs.items()}
    guessed = guessed_sizes(model, first.inputs, inputs or {}, dims or {})
    tolerance = _tolerance(rule, first.outputs)
    return ModelCheck(what, shapes, tuple(checks), layers, tuple(tries.calls), tolerance, guessed)


def chosen(caller: str, against: Sequence[str] | None, installed: Mapping[str, bool]) -> list[str]:
    """Return the names of the peers that a caller wants, by default of those that are installed.

    Raises
    ------
    ArgumentError
        A name is unknown, or its package is not installed.
    """
    if against is None:
        return [name for name in installed if installed[name]]
    for name in against:
        if name not in installed:
            problem = f"against has {shown(name)}; expected names out of {', '.join(installed)}"
            raise ArgumentError(f"{caller}: {problem}", argument="against")
        if not installed[name]:
            hint = f"`python -m pip install {name}` adds it"
            raise ArgumentError(f"{caller}: {name} is not installed; {hint}", argument="against")
    return list(dict.fromkeys(against))


def _tolerance(rule: Rule, outputs: Mapping[str, Any]) -> str:
    atol, rtol = rule.limits(*(np.asarray(array).dtype.name for array in outputs.values()))
    return f"{atol:g}" if atol == rtol else f"{atol:g}, relative {rtol:g}"


def _alone_models(runs: Sequence[LayerRun], suffix: str, folder: Path, is_static: bool) -> dict[int, AloneModel]:
    """Write the layers that the oracle can judge as models, by place; with fixed shapes if the model has them."""
    models = {}
    for place, run in enumerate(runs):
        if run.expected:
            with suppress(PyrnnxError):  # IR cannot express the layer, though it could the whole model
                models[place] = write_alone(run, folder / f"{place}{suffix}", static=is_static)
    return models


def _status(execution: Execution) -> Judged | None:
    """Return the status of a runtime that returned no outputs; None if it did."""
    if execution.status == "ran":
        return None
    detail = _CALLED_FROM.sub("", printable(execution.detail))
    return Judged({"refused": "refuses"}.get(execution.status, execution.status), detail=detail)


def _joined(calls: Sequence[Judged], reasons: Sequence[str]) -> Judged:
    """Return one result of several calls; `reasons` say why agreement would not show that a runtime agrees."""
    failed = next((judged for status in FAILURES for judged in calls if judged.status == status), None)
    ran = [judged for judged in calls if judged.status in ("agrees", "differs")]
    if failed is not None and failed.status != "differs":
        return failed
    if not ran:
        return calls[0]
    differences: dict[str, float] = {}
    for judged in ran:
        for name, value in judged.differences.items():
            differences[name] = largest((differences.get(name, math.nan), value))
    worst = failed or ran[0]
    status, detail = worst.status, ""
    refused = [judged for judged in calls if judged.status == "refuses"]
    if refused:
        detail = f"it refuses {len(refused)} of {len(calls)} calls: {refused[0].detail}"
    if status == "agrees" and reasons:
        status, detail = "not decided", "; ".join(reasons)
    return Judged(status, largest(differences.values()), worst.output, detail, differences)


def _layer_check(
    run: LayerRun,
    place: int,
    alone: Mapping[int, AloneModel],
    ran: Mapping[str, Mapping[int, Execution]],
    rule: Rule,
) -> LayerCheck:
    if not run.expected or run.layer is None or run.outputs is None:
        return LayerCheck(run.name, run.label, {}, printable(run.problem))
    if rule is ROUNDED and not isinstance(run.layer, QuantizedLayer):
        rule = LONG
    dtype, expected = run.layer.dtype.name, run.expected
    judged = {OWN: _judged(run.outputs, {name: expected[name] for name in run.outputs}, rule, dtype)}
    for name, executions in ran.items():
        if place in alone:
            outputs = alone[place].canonical(executions[place].outputs)
            wanted = {output: expected[output] for output in alone[place].axes}  # a cell has no Y
            judged[name] = _status(executions[place]) or _judged(outputs, wanted, rule, dtype)
    return LayerCheck(run.name, run.label, judged, alone=run.is_alone)


def _verdict(name: str, judged: Judged, layers: Sequence[LayerCheck]) -> str:
    """Return in one line which of two the oracle agrees with."""
    theirs = [
        _where(check, name) for check in layers if name in check.judged and check.judged[name].status == "differs"
    ]
    ours = [_where(check, OWN) for check in layers if check.judged and not check.judged[OWN].right]
    if judged.status not in ("agrees", "differs"):
        return shortened(f"{judged.status}: {judged.detail}")
    if judged.right:
        agrees = f"agrees, but {judged.detail}" if judged.detail else "agrees"
        return f"agrees, but alone its {theirs[0]} is away from the oracle" if theirs else shortened(agrees)
    if theirs or ours:
        if theirs and ours:
            return f"differs: the oracle agrees with neither ({theirs[0]}, and of pyrnnx {ours[0]})"
        return f"differs: the oracle agrees with {'pyrnnx' if theirs else name} ({(theirs or ours)[0]})"
    if any(name in check.judged and check.judged[name].right for check in layers):
        return "differs, but on random inputs each recurrent layer alone agrees with the oracle"
    return "differs; none of its layers can be compared with the oracle"


def _where(layer: LayerCheck, name: str) -> str:
    """Return a layer, and its first output that is away from the oracle."""
    return f"layer {shown(layer.name)}, {layer.judged[name].output}"
