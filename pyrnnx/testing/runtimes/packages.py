"""Python packages as runtimes of single operators."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from pyrnnx import reference
from pyrnnx.operator.conventions import CANONICAL, TORCH, convert_weights
from pyrnnx.operator.op import RecurrentOp
from pyrnnx.testing.cases import OUTPUTS, RUNTIME_INPUTS, Case
from pyrnnx.testing.numbers import Array
from pyrnnx.testing.runtimes.base import Outputs, PackageRuntime
from pyrnnx.testing.runtimes.models import ModelPackage


class PyrnnxFunctions(PackageRuntime):
    """The functions of `pyrnnx.frontends.onnx` and `pyrnnx.frontends.openvino`."""

    name = package = "pyrnnx"

    def supports(self, case: Case) -> bool:
        return True

    def load(self) -> None:
        importlib.import_module("pyrnnx.frontends.onnx")
        importlib.import_module("pyrnnx.frontends.openvino")

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Any:
        if case.family == "ONNX":
            function = getattr(importlib.import_module("pyrnnx.frontends.onnx"), case.operator.lower())
            return function(**arrays, **case.attributes, opset=case.opset)
        operation, version = case.operator.split("-")
        name = f"{case.cell}_{operation.removeprefix(case.cell)}".lower()  # LSTMCell: lstm_cell
        function = getattr(importlib.import_module("pyrnnx.frontends.openvino"), name)
        # only LSTMs have an older version; their functions take an opset
        first = {"opset": 1} if operation.startswith("LSTM") and version == "1" else {}
        return function(**arrays, **case.attributes, **first)


class OnnxEvaluator(ModelPackage):
    """`onnx.reference.ReferenceEvaluator`."""

    name, package = "onnx's evaluator", "onnx"

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        import onnx.reference

        model = onnx.ModelProto.FromString(self.model(case, arrays))
        return tuple(onnx.reference.ReferenceEvaluator(model).run(None, dict(arrays)))


class PyTorch(PackageRuntime):
    """torch.nn.RNN, GRU or LSTM, on one thread; rows of unequal lengths as a packed sequence.

    It has no words for the reverse direction alone, lengths of 0, clip, peepholes, input_forget, a GRU with
    linear_before_reset=0, and activations other than the default ones but for the RNN's relu.
    """

    name, package = "PyTorch", "torch"

    def supports(self, case: Case) -> bool:
        attributes = case.attributes
        return (
            case.family == "ONNX"
            and attributes.get("direction", "forward") in ("forward", "bidirectional")
            and not {"clip", "P"} & {*attributes, *case.inputs}
            and not attributes.get("input_forget")
            and (case.operator != "GRU" or attributes.get("linear_before_reset") == 1)
            and min(case.lens or (1,)) > 0
            and not (attributes.get("activation_alpha") or attributes.get("activation_beta"))
            and _nonlinearity(case) is not None
        )

    def load(self) -> None:
        importlib.import_module("torch").set_num_threads(1)
        importlib.import_module("pyrnnx.testing.same.torch_modules")

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        from pyrnnx.testing.same.torch_modules import run_layer

        def turned(name: str, array: Array) -> Array:
            is_state = name.startswith(("initial", "Y_"))  # batch_first is of X and Y alone
            return array.swapaxes(0, 1) if case.layout and is_state else array

        call = {name: arrays[name] for name in RUNTIME_INPUTS if name in arrays}
        call = {name: turned(name, array) for name, array in call.items()}
        outputs = run_layer(_layer(case, arrays), call, always_packed=True)
        results = [turned(name, outputs[name]) for name in OUTPUTS[case.operator]]
        return tuple(results) if case.layout else (results[0].swapaxes(1, 2), *results[1:])


def _nonlinearity(case: Case) -> str | None:
    """Return "tanh" or "relu", else None, as PyTorch has no other."""
    default = [name.lower() for name in reference.DEFAULT_ACTIVATIONS[case.operator]]
    activations = [name.lower() for name in case.attributes.get("activations", ())]
    # an RNN of one direction may be given the schema's default, of two
    used = activations[: len(default) * case.num_directions] or default * case.num_directions
    if case.operator == "RNN" and set(used) == {"relu"}:
        return "relu"
    return "tanh" if used == default * case.num_directions else None


def _layer(case: Case, arrays: Mapping[str, Array]) -> Any:
    import torch

    from pyrnnx.testing.same.torch_modules import as_tensor

    direction = case.attributes.get("direction", "forward")
    op = RecurrentOp(case.cell, case.H, direction, linear_before_reset=case.cell == "GRU")
    weights = {name: arrays[name] for name in ("W", "R", "B") if name in arrays}
    tensors = {name: as_tensor(w, None) for name, w in convert_weights(op, weights, CANONICAL, TORCH).items()}
    layer = getattr(torch.nn, case.operator)(
        case.I,
        case.H,
        bias="B" in tensors,
        bidirectional=case.num_directions == 2,
        batch_first=bool(case.layout),
        dtype=tensors["W"].dtype,
        **({"nonlinearity": _nonlinearity(case)} if case.operator == "RNN" else {}),
    )
    blocks = {"weight_ih": tensors["W"], "weight_hh": tensors["R"]}
    if "B" in tensors:
        blocks["bias_ih"], blocks["bias_hh"] = tensors["B"].chunk(2, dim=1)
    suffixes = ("_l0", "_l0_reverse")[: case.num_directions]
    layer.load_state_dict(
        {f"{name}{suffix}": block[d] for name, block in blocks.items() for d, suffix in enumerate(suffixes)}
    )
    return layer.eval()
