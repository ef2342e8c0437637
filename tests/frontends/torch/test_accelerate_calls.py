"""accelerate: changes of weights by every route, and inputs of every kind; for `pytest -m torch`."""

from __future__ import annotations

import copy
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

from pyrnnx.frontends.torch import accelerate

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch")
from torch_calls import DOUBLE, TOLERANCE, assert_same, outcome, outputs  # noqa: E402

nn = torch.nn

# Changes of the weights between two calls


def _sgd(module: Any, p: Any, x: Any) -> None:
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    module(x)[0].sum().backward()
    optimizer.step()


def _load(module: Any, p: Any, x: Any) -> None:
    module.load_state_dict({name: 1.5 * value for name, value in module.state_dict().items()})


def _assign(module: Any, p: Any, x: Any) -> None:
    module.load_state_dict({name: 1.5 * value for name, value in module.state_dict().items()}, assign=True)


def _inference(module: Any, p: Any, x: Any) -> None:
    with torch.inference_mode():
        p.mul_(1.1)


def _vector(module: Any, p: Any, x: Any) -> None:
    vector = nn.utils.parameters_to_vector(module.parameters())
    nn.utils.vector_to_parameters(0.5 * vector, module.parameters())


ROUTES: dict[str, Callable[[Any, Any, Any], Any]] = {  # of a module, one of its parameters, and an input
    "optimizer": _sgd,
    "load_state_dict": _load,
    "load_state_dict, assign": _assign,
    "in inference mode": _inference,
    "vector_to_parameters": _vector,
    "copy_ without gradients": lambda module, p, x: torch.no_grad()(p.copy_)(torch.randn_like(p)),
    "set_": lambda module, p, x: torch.no_grad()(p.set_)(torch.randn_like(p)),
    "reset_parameters": lambda module, p, x: module.reset_parameters(),
    "data replaced": lambda module, p, x: setattr(p, "data", torch.randn_like(p)),
    "a new parameter": lambda module, p, x: setattr(module, "weight_hh_l1", nn.Parameter(torch.randn_like(p))),
    # No version counter sees these:
    "data.add_": lambda module, p, x: p.data.add_(0.1),
    "data of an element": lambda module, p, x: p.data[-1, -1].add_(1e-3),
    "data negated": lambda module, p, x: p.data.neg_(),
    "NumPy": lambda module, p, x: np.add(p.detach().numpy(), 0.1, out=p.detach().numpy()),
    "storage": lambda module, p, x: p.untyped_storage().copy_(torch.randn_like(p).untyped_storage()),
    "in shared memory": lambda module, p, x: (module.share_memory(), p.data.mul_(2)),
}


@pytest.mark.parametrize("inplace", [False, True])
def test_every_change_of_a_weight_is_seen(inplace: bool) -> None:
    for name, change in ROUTES.items():
        torch.manual_seed(0)
        module = nn.LSTM(5, 7, 2, bidirectional=True, **DOUBLE).eval()
        fast, plain = (module, copy.deepcopy(module)) if inplace else (accelerate(module), module)
        if inplace:
            accelerate(fast, inplace=True)
        x = torch.randn(4, 3, 5, **DOUBLE)
        for _ in range(2):
            assert_same(fast, plain, x)
            before = outputs(fast, x)
            target = fast if inplace or "new" in name or "assign" in name else plain
            change(target, target.weight_hh_l1, x)
            if target is fast:
                plain = nn.LSTM(5, 7, 2, bidirectional=True, **DOUBLE).eval()
                plain.load_state_dict(fast.state_dict())
            after = outputs(fast, x)
            assert fast.why_not is None, name
            assert not torch.equal(before[0], after[0]), name
            assert_same(fast, plain, x)


def test_a_weight_of_the_same_bytes_in_another_order() -> None:
    module = nn.RNN(5, 5, **DOUBLE)
    fast, x = accelerate(module), torch.randn(4, 3, 5, **DOUBLE)
    assert_same(fast, module, x)
    module.weight_hh_l0.data = module.weight_hh_l0.data.t()
    assert_same(fast, module, x)
    assert fast.why_not == "weight_hh_l0 is not contiguous; expected contiguous memory"


def test_attributes_that_change() -> None:
    module = nn.RNN(5, 7, **DOUBLE)
    fast, x = accelerate(module, inplace=True), torch.randn(4, 3, 5, **DOUBLE)
    plain = nn.RNN(5, 7, **DOUBLE)
    plain.load_state_dict(fast.state_dict())
    for name, value in (("batch_first", True), ("mode", "RNN_RELU"), ("batch_first", False), ("mode", "RNN_TANH")):
        setattr(fast, name, value)
        setattr(plain, name, value)
        assert_same(fast, plain, x)
        assert fast.why_not is None
    cell = accelerate(nn.RNNCell(5, 7, **DOUBLE))
    with torch.no_grad():
        tanh = cell(x[0])
        cell.nonlinearity = "relu"
        assert not torch.equal(cell(x[0]), tanh)
        np.testing.assert_allclose(cell(x[0]), torch.relu(torch.atanh(tanh)), atol=TOLERANCE)


def _freed(tensor: Any) -> Any:
    """Return a tensor whose memory was freed, as sharded training does with parameters that are not in use."""
    tensor = tensor.clone()
    tensor.untyped_storage().resize_(0)
    return tensor


SIZES = "num_layers, bidirectional and bias are not those"
UNFIT: dict[str, tuple[Any, Callable[[Any], Any], str | None]] = {  # a class, a change of its modules, and why_not
    "a layer less": (nn.GRU, lambda m: setattr(m, "num_layers", 1), SIZES),
    "no biases": (nn.LSTM, lambda m: setattr(m, "bias", False), SIZES),
    "a mode of cells": (nn.RNN, lambda m: setattr(m, "mode", "relu"), "mode is 'relu'; expected"),
    "an LSTM's mode": (nn.LSTM, lambda m: setattr(m, "mode", "GRU"), None),
    "a scalar weight": (
        nn.GRU,
        lambda m: setattr(m, "weight_ih_l0", nn.Parameter(torch.ones((), **DOUBLE))),
        "weight_ih_l0 has shape (); input_size is 5",
    ),
    "a freed weight": (
        nn.GRU,
        lambda m: setattr(m, "weight_hh_l1", nn.Parameter(_freed(m.weight_hh_l1.data))),
        "weight_hh_l1 has no memory, because its storage was freed; expected one that has",
    ),
    "a cell without bias": (nn.GRUCell, lambda m: setattr(m, "bias", False), None),
}


@pytest.mark.parametrize("name", UNFIT)
def test_changes_that_do_not_fit_the_parameters(name: str) -> None:
    """The same results or the same error as PyTorch's, before and after a call that packs the weights."""
    kind, change, reason = UNFIT[name]
    for is_packed in (False, True):
        torch.manual_seed(0)
        options = {} if issubclass(kind, nn.RNNCellBase) else {"num_layers": 2, "bidirectional": True}
        module = kind(5, 7, **options, **DOUBLE)
        fast, x = accelerate(copy.deepcopy(module), inplace=True), torch.randn(4, 3, 5, **DOUBLE)
        x = x if options else x[0, :2]  # `outputs` takes the two rows of a cell's h
        if is_packed:
            outcome(fast, x)
        change(module)
        change(fast)
        for arguments in ((x,), (-x,)):
            theirs, ours = outcome(module, *arguments), outcome(fast, *arguments)
            if isinstance(theirs[0], torch.Tensor):
                for a, b in zip(ours, theirs, strict=True):
                    np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE)
            else:
                assert ours == theirs
            assert (fast.why_not or "").startswith(reason or "")
            assert (fast.why_not is None) == (reason is None)


@pytest.mark.parametrize("kind", [nn.RNNCell, nn.GRUCell, nn.LSTMCell])
def test_biases_that_a_cell_is_given_or_loses(kind: Any) -> None:
    module = kind(5, 7, bias=False, **DOUBLE)
    fast, x = accelerate(copy.deepcopy(module), inplace=True), torch.randn(3, 5, **DOUBLE)
    values = torch.randn(2, len(module.weight_ih), **DOUBLE)
    for biases in ((None, None), tuple(map(nn.Parameter, values)), (None, None)):
        for each in (module, fast):
            each.bias_ih, each.bias_hh = biases
        for inputs in (x, -x):
            with torch.no_grad():
                ours, theirs = fast(inputs), module(inputs)
            for a, b in zip(ours, theirs, strict=True):  # h and c, or the rows of h
                np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE)
            assert fast.why_not is None


@pytest.mark.filterwarnings("ignore")  # weight_norm is deprecated
def test_parametrized_and_pruned_weights() -> None:
    prune: Any = import_module("torch.nn.utils.prune")
    utils, name = nn.utils, "weight_hh_l0"
    changes: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
        "parametrizations": (
            lambda m: utils.parametrizations.weight_norm(m, name),
            lambda m: utils.parametrize.remove_parametrizations(m, name),
        ),
        "weight_norm": (lambda m: utils.weight_norm(m, name), lambda m: utils.remove_weight_norm(m, name)),
        "prune": (lambda m: prune.l1_unstructured(m, name, 0.4), lambda m: prune.remove(m, name)),
    }
    for make, remove in changes.values():
        fast, x = accelerate(nn.GRU(5, 7, **DOUBLE)), torch.randn(4, 3, 5, **DOUBLE)
        outputs(fast, x)
        make(fast)
        expected = outputs(fast, x)
        assert fast.why_not == (
            "weight_hh_l0 is not a parameter of its own (parametrized, weight-normed or pruned); expected one"
        )
        remove(fast)
        for ours, theirs in zip(outputs(fast, x), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=TOLERANCE)
        assert fast.why_not is None


# Inputs


def test_views_are_read_in_place_or_copied() -> None:
    module = nn.LSTM(5, 7, batch_first=True, **DOUBLE)
    fast, big = accelerate(module), torch.randn(9, 8, 11, **DOUBLE)
    views = {
        "slice": big[::2, 1:4, 3:8],
        "every other feature": big[:, :, ::2][..., :5],
        "expanded": big[:1, :1, :5].expand(3, 4, 5),
        "one feature expanded": big[:3, :4, :1].expand(3, 4, 5),
        "permuted": big[:5].permute(1, 2, 0),
        "requires gradients": big[:, :, :5].clone().requires_grad_(),
        "a parameter": nn.Parameter(big[:, :, :5].clone()),
        "one row": big[:1, :, :5],
        "one step": big[:, :1, :5],
    }
    for name, x in views.items():
        N = len(x)
        h, c = torch.randn(1, N, 14, **DOUBLE)[..., ::2], torch.randn(7, N, 1, **DOUBLE).permute(2, 1, 0)
        for arguments in ((x,), (x, (h, c)), (x, [h, c])):
            before = x.detach().clone()
            assert_same(fast, module, *arguments)
            assert fast.why_not is None, name
            assert torch.equal(x, before)


def test_results_are_new_tensors() -> None:
    fast, x = accelerate(nn.GRU(5, 7)), torch.randn(4, 3, 5)
    h = torch.randn(1, 3, 7)
    kept, first = h.clone(), outputs(fast, x, h)
    copies = [each.clone() for each in first]
    second = outputs(fast, 2 * x, h)
    assert torch.equal(h, kept)
    assert all(torch.equal(a, b) for a, b in zip(first, copies, strict=True))
    second[0].add_(torch.ones(7, requires_grad=True))  # results can be changed, and be part of a graph
    assert second[0].requires_grad


GRADIENTS = "gradients are needed: call it under torch.no_grad() or torch.inference_mode()"
X = torch.randn(2, 3, 5, **DOUBLE)
STATES = (torch.randn(1, 2, 7, **DOUBLE), torch.randn(1, 2, 7, **DOUBLE))


class Tagged(torch.Tensor):  # type: ignore[misc]
    """A subclass of tensors."""


DECLINED: dict[str, tuple[tuple[Any, ...], str]] = {  # arguments of nn.LSTM(5, 7, batch_first=True), and why_not
    "input_size": ((X[..., :4],), "input has shape (2, 3, 4); expected (batch_size, seq_length, 5) or (seq_length, 5)"),
    "rank": ((X[0, 0],), "input has shape (5,); expected"),
    "dtype": ((X.float(),), "input has dtype torch.float32; expected torch.float64"),
    "no steps": ((X[:, :0],), "input has shape (2, 0, 5), which is empty; expected no axis of size 0"),
    "one state": ((X, STATES[0]), "hx is not a pair of tensors"),
    "shape of h": ((X, (torch.randn(1, 3, 7, **DOUBLE), STATES[1])), "hx has shape (1, 3, 7); expected (1, 2, 7)"),
    "dtype of c": ((X, (STATES[0], STATES[1].float())), "hx has dtype torch.float32"),
    "no c": ((X, (STATES[0], None)), "hx is a NoneType; expected a torch.Tensor"),
    "array": ((X.numpy(),), "input is a ndarray"),
    "subclass": ((X.as_subclass(Tagged),), "input is a Tagged; expected a torch.Tensor"),
    "sparse": ((X.to_sparse(),), "input has layout torch.sparse_coo; expected torch.strided"),
    "meta": ((X.to("meta"),), "input is on meta; expected the CPU"),
    "negative bit": (
        (torch.conj(torch.complex(X, X)).imag,),
        "input is a negative view, whose signs are not in memory",
    ),
    "freed": ((_freed(X),), "input has no memory, because its storage was freed; expected one that has"),
    "freed state": ((X, (_freed(STATES[0]), STATES[1])), "hx has no memory"),
    "zero tensor": ((torch._efficientzerotensor(2, 3, 5, **DOUBLE),), "input is a zero tensor without memory"),
}


@pytest.mark.parametrize("name", DECLINED)
def test_what_pytorch_runs_or_rejects(name: str) -> None:
    """The same results or the same error, and the reason."""
    arguments, reason = DECLINED[name]
    torch.manual_seed(0)
    module = nn.LSTM(5, 7, batch_first=True, **DOUBLE).eval()
    fast = accelerate(module)
    outputs(fast, X)
    results = [outcome(each, *arguments) for each in (module, fast)]
    if isinstance(results[0][0], torch.Tensor):
        assert all(torch.equal(a, b) for a, b in zip(*results, strict=True))
    else:
        assert results[0] == results[1]
    assert (fast.why_not or "").startswith(reason)
    assert fast.why_not is not None
    assert_same(fast, module, X, STATES)
    assert fast.why_not is None


def test_malformed_packed_sequences() -> None:
    module = nn.GRU(5, 7, **DOUBLE)
    fast, data = accelerate(module), torch.randn(6, 5, **DOUBLE)
    for sizes in ([3, 2], [2, 3, 1], [3, 2, 1, 0], [4, 3]):
        packed = nn.utils.rnn.PackedSequence(data, torch.tensor(sizes))
        theirs, ours = (outcome(each, packed) for each in (module, fast))
        if isinstance(theirs[1], torch.Tensor):
            assert torch.equal(theirs[1], ours[1])
        else:
            assert theirs == ours
        assert fast.why_not.startswith("input.batch_sizes does not describe input.data; expected")
    for sizes, reason in (
        (torch.tensor([3, 2, 1], dtype=torch.int32), "input.batch_sizes has dtype torch.int32; expected torch.int64"),
        (torch.tensor([3, 2, 1]), None),
    ):
        packed = nn.utils.rnn.PackedSequence(data, sizes, torch.tensor([2, 0, 1]), torch.tensor([1, 2, 0]))
        for hx in (None, torch.randn(1, 3, 7, **DOUBLE)):
            theirs, ours = (outcome(each, packed, hx) for each in (module, fast))
            assert repr(theirs) == repr(ours) or all(torch.allclose(a, b) for a, b in zip(theirs, ours, strict=True))
            assert fast.why_not == reason
        hx = torch.randn(1, 2, 7, **DOUBLE)
        assert outcome(module, packed, hx) == outcome(fast, packed, hx)
        assert fast.why_not.startswith(reason or "hx has shape (1, 2, 7); expected")


def test_arguments_that_python_rejects() -> None:
    for module in (nn.LSTM(5, 7), nn.GRUCell(5, 7)):
        fast = accelerate(module)
        for arguments in ((), (X, None, None)):
            messages = []
            for each in (module, fast):
                with pytest.raises(TypeError) as error:
                    each(*arguments)
                messages.append(str(error.value))
            assert messages[0] == messages[1]


def test_gradients_and_dropout() -> None:
    module = nn.LSTM(5, 7, 2, dropout=0.5, batch_first=True, **DOUBLE).eval()
    fast = accelerate(module)
    fast(X)[0].sum().backward()
    assert fast.why_not == GRADIENTS
    assert module.weight_ih_l0.grad is not None
    module.requires_grad_(False)
    assert not fast(X)[0].requires_grad
    assert fast.why_not is None
    assert fast(X.clone().requires_grad_())[0].requires_grad
    assert fast.why_not == GRADIENTS
    states = tuple(state.repeat(2, 1, 1).requires_grad_() for state in STATES)
    assert fast(X, states)[0].requires_grad
    assert fast.why_not == GRADIENTS
    with torch.no_grad():
        fast.train()
        assert not torch.equal(fast(X)[0], fast(X)[0])
        assert fast.why_not == "the module is in training mode with dropout"
        fast.eval()
        fast(X)
    assert fast.why_not is None
