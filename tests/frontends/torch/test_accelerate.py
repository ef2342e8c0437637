"""accelerate beside PyTorch itself: results of random modules and of PyTorch's own cases; for `pytest -m torch`."""

from __future__ import annotations

import copy
import io
import pickle
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pyrnnx import ArgumentError, UnsupportedError
from pyrnnx.frontends.torch import accelerate, restore, why_not

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch")
nn = torch.nn

# float64 to float32: sums in another order, over 3 layers of 7 steps. Below: PyTorch rounds after each operation.
TOLERANCES = {"float64": 1e-12, "float32": 2e-5, "float16": 1e-2, "bfloat16": 8e-2}
KINDS = ("RNN", "GRU", "LSTM")
CALLS = 5


def tensors_of(value: Any) -> Iterator[Any]:
    """Yield the tensors of nested tuples; also of a PackedSequence, which is one."""
    if isinstance(value, tuple):
        for inner in value:
            yield from tensors_of(inner)
    elif value is not None:
        yield value


def assert_same(ours: Any, theirs: Any, tolerance: float) -> None:
    a, b = list(tensors_of(ours)), list(tensors_of(theirs))
    assert type(ours) is type(theirs)
    assert len(a) == len(b)
    for mine, yours in zip(a, b, strict=True):
        assert (mine.shape, mine.dtype, type(mine)) == (yours.shape, yours.dtype, type(yours))
        assert 1 in mine.shape or mine.stride() == yours.stride()  # an axis of size 1 may have any stride
        assert mine.is_inference() == yours.is_inference()
        assert not mine.requires_grad
        np.testing.assert_allclose(mine.double().numpy(), yours.double().numpy(), rtol=0, atol=tolerance)


def random_case(seed: int) -> tuple[Any, Iterator[tuple[Any, Any]], float]:
    """Return a module or cell, the arguments of its calls, and the tolerance."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    kind, is_cell = KINDS[seed % 3], seed % 7 == 0
    name = ("float64", "float64", "float32", "float16", "bfloat16")[seed % 5]
    dtype, bias = getattr(torch, name), bool(rng.integers(2))
    I, H = int(rng.integers(1, 20)), int(rng.integers(1, 40))
    options: dict[str, Any] = {"bias": bias, "dtype": dtype}
    if kind == "RNN":
        options["nonlinearity"] = ("tanh", "relu")[int(rng.integers(2))]
    if is_cell:
        module = getattr(nn, kind + "Cell")(I, H, **options)
    else:
        options |= {"num_layers": int(rng.integers(1, 4)), "dropout": 0.5 * (seed % 2)}
        options |= {"batch_first": bool(rng.integers(2)), "bidirectional": bool(rng.integers(2))}
        options["dropout"] *= options["num_layers"] > 1  # else PyTorch warns
        module = getattr(nn, kind)(I, H, **options)
    return module.eval(), _arguments(rng, module, kind, I, H, dtype), TOLERANCES[name]


def _arguments(rng: Any, module: Any, kind: str, I: int, H: int, dtype: Any) -> Iterator[tuple[Any, Any]]:
    """Yield other inputs for each call: padded, packed (sorted or not), unbatched, strided; states or None."""

    def values(*shape: int) -> Any:
        return torch.from_numpy(rng.normal(size=shape)).to(dtype)

    rows = 0 if isinstance(module, nn.RNNCellBase) else module.num_layers * (1 + module.bidirectional)
    for call in range(CALLS):
        T, N = int(rng.integers(1, 8)), int(rng.integers(1, 6))
        is_batched = call != 3
        if not rows:
            X = values(N, 2 * I)[:, ::2] if call == 2 else values(*(N,) * is_batched, I)
            state: tuple[int, ...] = (*(N,) * is_batched, H)
        else:
            first = module.batch_first and is_batched
            outer = ((N, T) if first else (T, N)) if is_batched else (T,)
            X = values(*outer, 2 * I)[..., ::2] if call == 2 else values(*outer, I)
            state = (rows, *(N,) * is_batched, H)
            if call in (1, 4):
                lengths = torch.from_numpy(np.sort(rng.integers(1, T + 1, N))[::-1].copy())
                lengths = lengths if call == 1 else lengths[torch.randperm(N)]
                X = nn.utils.rnn.pack_padded_sequence(X, lengths, first, enforce_sorted=call == 1)
        states = tuple(values(*state) for _ in range(1 + (kind == "LSTM")))
        yield X, None if call % 2 else states if kind == "LSTM" else states[0]


@pytest.mark.parametrize("group", range(10))
def test_200_random_modules(group: int) -> None:
    for seed in range(20 * group, 20 * group + 20):
        module, arguments, tolerance = random_case(seed)
        fast = accelerate(module)
        for k, (X, hx) in enumerate(arguments):
            with torch.no_grad() if k % 2 else torch.inference_mode():
                assert_same(fast(X, hx), module(X, hx), tolerance)
            assert fast.why_not is None, (seed, k, fast.why_not)


@pytest.mark.filterwarnings("ignore")  # oneDNN has no projections
def test_projections_run_on_pytorch() -> None:
    module, x = nn.LSTM(3, 4, proj_size=2).eval(), torch.randn(5, 2, 3)
    fast = accelerate(module)
    with torch.no_grad():
        assert_same(fast(x), module(x), 0)
    assert "proj_size" in fast.why_not


# The module stays what it was


class Own(torch.nn.LSTM):  # type: ignore[misc]
    """A subclass with PyTorch's forward."""


class Replaced(torch.nn.GRU):  # type: ignore[misc]
    def forward(self, *arguments: Any) -> Any:
        Y, last = super().forward(*arguments)
        return 2 * Y, last


class Tagger(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.ModuleDict({"own": Own(3, 4, 2, batch_first=True), "gru": nn.GRU(4, 5, batch_first=True)})
        self.cell = nn.RNNCell(5, 5)
        self.same = self.cell
        self.scaled = Replaced(5, 5, batch_first=True)
        self.register_buffer("offset", torch.ones(5))

    def forward(self, x: Any) -> Any:
        y = self.encoder["gru"](self.encoder["own"](x)[0])[0]
        return self.same(self.cell(self.scaled(y + self.offset)[0][:, -1]))


def test_a_model_in_a_copy() -> None:
    torch.manual_seed(0)
    model = Tagger().double()
    x = torch.randn(2, 7, 3, dtype=torch.float64)
    fast = accelerate(model)
    assert (repr(fast), list(fast.state_dict()), type(fast)) == (repr(model), list(model.state_dict()), Tagger)
    for (name, a), (other, b) in zip(fast.named_parameters(), model.named_parameters(), strict=True):
        assert name == other
        assert a is b
    assert fast.offset is model.offset
    assert [name for name, inner in fast.named_modules() if hasattr(inner, "why_not")] == [
        "encoder.own",
        "encoder.gru",
        "cell",
    ]
    assert fast.same is fast.cell
    assert isinstance(fast.encoder["own"], Own)
    assert not any(hasattr(inner, "why_not") for inner in model.modules())
    assert fast.cell.why_not == "the module has not been called"
    for _ in range(CALLS):
        x = torch.randn(2, 7, 3, dtype=torch.float64)
        with torch.no_grad():
            assert_same(fast(x), model(x), 1e-12)
        assert [inner.why_not for inner in (fast.cell, *fast.encoder.values())] == [None] * 3
    assert accelerate(fast, inplace=True) is fast  # again


def test_in_place_and_undone() -> None:
    model = Tagger()
    before = {name: type(inner) for name, inner in model.named_modules()}
    attributes = {name: set(vars(inner)) for name, inner in model.named_modules()}
    assert accelerate(model, inplace=True) is model
    assert [name for name, inner in model.named_modules() if type(inner) is not before[name]] == [
        "encoder.own",
        "encoder.gru",
        "cell",
    ]
    assert restore(model) is model
    assert {name: type(inner) for name, inner in model.named_modules()} == before
    assert {name: set(vars(inner)) for name, inner in model.named_modules()} == attributes


def saved(model: Any) -> Any:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def pickled(model: Any) -> Any:
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, pickled, saved])
def test_copies_are_accelerated_and_independent(copied: Any) -> None:
    fast, x = accelerate(Tagger().double()), torch.randn(2, 4, 3, dtype=torch.float64)
    with torch.no_grad():
        expected = fast(x)
        same = copied(fast)
        assert_same(same(x), expected, 0)
        assert same.encoder["own"].why_not is None
        cell = copied(fast.cell)
        assert type(cell) is type(fast.cell)
        if copied is not copy.copy:
            same.cell.weight_ih.zero_()
            assert not torch.equal(same(x), expected)
            assert_same(fast(x), expected, 0)


def test_hooks_and_calls_by_name() -> None:
    module = nn.LSTM(3, 4).eval()
    seen = []
    module.register_forward_pre_hook(lambda module, arguments: (2 * arguments[0],))
    module.register_forward_hook(lambda module, arguments, output: seen.append(output[0].shape))
    fast, x = accelerate(module), torch.randn(5, 2, 3)
    with torch.no_grad():
        assert_same(fast(x), module(x), 1e-6)
        assert_same(fast.forward(input=x, hx=None), module.forward(input=x, hx=None), 1e-6)
    assert len(seen) == 2


@pytest.mark.parametrize("name", ["float64", "float16", "bfloat16", "float32"])
def test_conversions_of_the_dtype(name: str) -> None:
    module = nn.GRU(3, 4, 2).eval()
    fast, dtype = accelerate(copy.deepcopy(module)), getattr(torch, name)
    x = torch.randn(5, 2, 3)
    with torch.no_grad():
        fast(x)
        assert_same(fast.to(dtype)(x.to(dtype)), module.to(dtype)(x.to(dtype)), TOLERANCES[name])
    assert fast.why_not is None


def test_rejected() -> None:
    parametrized = nn.utils.parametrizations.weight_norm(nn.GRU(3, 4), "weight_hh_l0")
    for module, message in (
        ("LSTM", "accelerate: module is 'LSTM'; expected a torch.nn.Module"),
        (nn.Linear(2, 3), r"Linear has no recurrent module to replace \(none at all\); expected one of torch.nn.RNN,"),
        (Replaced(2, 3), r"\('Replaced': it has a forward of its own\); expected"),
        (
            nn.Sequential(parametrized, Replaced(2, 3)),
            r"\('0': it is parametrized, '1': it has a forward of its own\); e",
        ),
    ):
        with pytest.raises(ArgumentError, match=message):
            accelerate(module)
    with pytest.raises(ArgumentError, match="accelerate: inplace is 1; expected True or False"):
        accelerate(nn.GRU(3, 4), inplace=1)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="restore: module is None; expected a"):
        restore(None)
    fast = accelerate(nn.Sequential(nn.GRU(3, 4)))
    nn.utils.parametrizations.weight_norm(fast[0], "weight_hh_l0")
    with pytest.raises(UnsupportedError, match="restore: '0' was parametrized after accelerate; remove its"):
        restore(fast)


def test_why_not_of_a_model() -> None:
    model = Tagger()
    plain = "it is not accelerated: call accelerate(model), or use the copy that it returned"
    own = {"scaled": "it has a forward of its own"}
    assert why_not(model) == {**dict.fromkeys(("encoder.own", "encoder.gru", "cell"), plain), **own}
    fast = accelerate(model)
    assert why_not(fast)["cell"] == "the module has not been called"
    with torch.no_grad():
        fast(torch.randn(2, 7, 3))
    assert why_not(fast) == {"encoder.own": None, "encoder.gru": None, "cell": None, **own}
    assert why_not(nn.Linear(2, 3)) == {}
    with pytest.raises(ArgumentError, match=r"why_not: module is None; expected a torch.nn.Module"):
        why_not(None)


def test_another_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pyrnnx.frontends.torch.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr("torch._C._are_functorch_transforms_active")
    monkeypatch.delattr("pyrnnx.frontends.torch.accelerated", raising=False)
    with pytest.raises(UnsupportedError, match=r"accelerate: PyTorch 2.* has other internals \(.*; expected 2\.13"):
        accelerate(nn.GRU(3, 4))
