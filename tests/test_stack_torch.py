"""Stacks beside torch.nn.RNN, GRU and LSTM of the same weights, with num_layers."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from pyrnnx import Stack
from pyrnnx.frontends.onnx import write_model
from pyrnnx.frontends.torch import from_module
from pyrnnx.testing.numbers import assert_close, tolerance_of

pytestmark = pytest.mark.torch
T, N, I, H = 7, 4, 3, 5
CASES = list(product(("RNN", "GRU", "LSTM"), (1, 2, 3), (False, True), (False, True)))


def made(cell: str, num_layers: int, bidirectional: bool, batch_first: bool) -> tuple[Any, Any, Stack]:
    torch = pytest.importorskip("torch")
    torch.manual_seed(num_layers)
    options = {"num_layers": num_layers, "bidirectional": bidirectional, "batch_first": batch_first}
    module = getattr(torch.nn, cell)(I, H, **options).eval()
    return torch, module, from_module(module)


def flat(torch_results: Any) -> list[Any]:
    Y, states = torch_results
    return [one.detach().numpy() for one in (Y, *(states if isinstance(states, tuple) else (states,)))]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_and_states(case: Any) -> None:
    torch, module, stack = made(*case)
    X = torch.randn((N, T, I) if stack.batch_first else (T, N, I))
    states = [torch.randn((sum(stack.num_directions), N, H)) for _ in stack.output_names[1:]]
    arrays = [one.numpy() for one in (X, *states)]
    results = stack(arrays[0], None, *arrays[1:])
    expected = flat(module(X, tuple(states) if len(states) > 1 else states[0]))
    assert_close(results, expected, tolerance_of(np.float32))
    model = write_model(stack, inputs=("initial_h", "initial_c")[: len(states)])
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.name for one in model.graph.input]
    assert_close(session.run(None, dict(zip(names, arrays, strict=True))), expected, tolerance_of(np.float32))


@pytest.mark.parametrize("case", [case for case in CASES if case[1] == 2], ids=str)
def test_packed_sequences(case: Any) -> None:
    torch, module, stack = made(*case)
    rnn = torch.nn.utils.rnn
    lengths = [3, 7, 1, 7]
    tensors = [torch.randn(length, I) for length in lengths]
    packed, last = module(rnn.pack_sequence(tensors, enforce_sorted=False))
    Y, *states = stack([one.numpy() for one in tensors])
    for one, tensor in zip(Y, rnn.unpack_sequence(packed), strict=True):
        np.testing.assert_allclose(one, tensor.detach().numpy(), atol=1e-5)
    padded, own_lengths = rnn.pad_packed_sequence(packed, batch_first=stack.batch_first)
    X = rnn.pad_sequence(tensors, batch_first=stack.batch_first).numpy()
    wanted = flat((padded, last))
    assert_close((stack(X, own_lengths.numpy())[0], *states), wanted, tolerance_of(np.float32))
