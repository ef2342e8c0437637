"""PyTorch."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyrnnx.testing.cases import Case
from pyrnnx.testing.numbers import Array, numpy_dtype
from pyrnnx.testing.runtimes.base import Outputs, PackageRuntime

# Blocks of ONNX's gate order in the order of PyTorch: GRU r, z, n from z, r, h; LSTM i, f, g, o from i, o, f, c.
GATES = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 2, 3, 1)}
ACTIVATIONS = {"RNN": ("tanh",), "GRU": ("sigmoid", "tanh"), "LSTM": ("sigmoid", "tanh", "tanh")}


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

    def run(self, case: Case, arrays: Mapping[str, Array]) -> Outputs:
        import torch

        D, given = case.num_directions, {name: _to_tensor(array) for name, array in arrays.items()}
        layer = _layer(case, given)
        X = given["X"]
        states = {name: given[name] for name in ("initial_h", "initial_c") if name in given}
        if case.layout:  # batch_first is of X and Y alone
            states = {name: state.transpose(0, 1).contiguous() for name, state in states.items()}
        zeros = torch.zeros(D, case.N, case.H, dtype=X.dtype)
        initial: Any = states.get("initial_h", zeros)
        if case.operator == "LSTM":
            initial = (initial, states.get("initial_c", zeros))
        rnn = torch.nn.utils.rnn
        with torch.inference_mode():
            if "sequence_lens" in given:
                lengths = given["sequence_lens"].to(torch.int64)
                X = rnn.pack_padded_sequence(X, lengths, batch_first=bool(case.layout), enforce_sorted=False)
            Y, last = layer(X, initial)
            if "sequence_lens" in given:
                Y, _ = rnn.pad_packed_sequence(Y, batch_first=bool(case.layout), total_length=case.T)
        Y = Y.unflatten(-1, (D, case.H))  # [T, N, D, H] or [N, T, D, H]
        lasts = last if case.operator == "LSTM" else (last,)
        if case.layout:
            return (_to_array(Y), *(_to_array(one.transpose(0, 1)) for one in lasts))
        return (_to_array(Y.transpose(1, 2)), *map(_to_array, lasts))


def _nonlinearity(case: Case) -> str | None:
    """ "tanh" or "relu"; None for what PyTorch does not have."""
    default = ACTIVATIONS[case.operator]
    given = tuple(name.lower() for name in case.attributes.get("activations", ()))
    # an RNN of one direction may be given the schema's default, of two
    used = given[: len(default) * case.num_directions] or default * case.num_directions
    if case.operator == "RNN" and set(used) == {"relu"}:
        return "relu"
    return "tanh" if used == default * case.num_directions else None


def _layer(case: Case, given: Mapping[str, Any]) -> Any:
    import torch

    options = {"nonlinearity": _nonlinearity(case)} if case.operator == "RNN" else {}
    layer = getattr(torch.nn, case.operator)(
        case.I,
        case.H,
        bias="B" in given,
        bidirectional=case.num_directions == 2,
        batch_first=bool(case.layout),
        dtype=given["X"].dtype,
        **options,
    )
    blocks = {"weight_ih": given["W"], "weight_hh": given["R"]}
    if "B" in given:
        blocks["bias_ih"], blocks["bias_hh"] = given["B"].chunk(2, dim=1)
    gates = GATES[case.operator]
    parameters = {}
    for direction, suffix in enumerate(("_l0", "_l0_reverse")[: case.num_directions]):
        for name, block in blocks.items():
            parts = block[direction].chunk(len(gates))
            parameters[name + suffix] = torch.cat([parts[gate] for gate in gates])
    layer.load_state_dict(parameters)
    return layer.eval()


def _to_tensor(array: Array) -> Any:
    import torch

    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _to_array(tensor: Any) -> Array:
    import torch

    if tensor.dtype == torch.bfloat16:
        return np.array(tensor.contiguous().view(torch.int16)).view(numpy_dtype("bfloat16"))
    return np.array(tensor)
