"""accelerate: transforms, graphs and threads of PyTorch; for `pytest -m torch`."""

from __future__ import annotations

import copy
import threading
from typing import Any

import numpy as np
import pytest

from pyrnnx.frontends.torch import accelerate, restore

pytestmark = pytest.mark.torch
torch: Any = pytest.importorskip("torch")
from torch_calls import DOUBLE, TOLERANCE, assert_same, outputs  # noqa: E402

nn = torch.nn
X = torch.randn(2, 3, 5, **DOUBLE)


@pytest.mark.filterwarnings("ignore")  # vmap has no rule for cells
def test_transforms_and_modes() -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    module = nn.GRUCell(5, 7, **DOUBLE).eval()
    fast, x = accelerate(module), X[0]
    with torch.no_grad():
        expected = module(x)
        vmapped = torch.func.vmap(fast)(x)
        np.testing.assert_allclose(vmapped, expected, atol=TOLERANCE)
        assert fast.why_not.startswith("a functorch transform is active (torch.func")
        with torch.autocast("cpu", torch.bfloat16):
            assert fast(x).dtype == module(x).dtype
        assert fast.why_not == "autocast is enabled (torch.autocast)"
        with torch.device("meta"):
            fast(x)
        assert fast.why_not == "the default device is meta (torch.set_default_device, or with torch.device)"
        with torch.overrides.BaseTorchFunctionMode():
            fast(x)
        assert fast.why_not == "a TorchFunctionMode is active (with BaseTorchFunctionMode())"
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            assert fast(mode.from_tensor(x)).shape == expected.shape
        assert fast.why_not.startswith("a TorchDispatchMode is active (a with block")
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
            assert torch.autograd.forward_ad.unpack_dual(fast(dual)).tangent is not None
        assert fast.why_not == "forward-mode automatic differentiation is active"
        halved = {name: 0.5 * value for name, value in module.named_parameters()}
        np.testing.assert_allclose(
            torch.func.functional_call(fast, halved, (x,)),
            torch.func.functional_call(module, halved, (x,)),
            atol=TOLERANCE,
        )
        assert fast.why_not is None
        np.testing.assert_allclose(fast(x), expected, atol=TOLERANCE)
    gradient = torch.func.grad(lambda row: fast(row).sum())(x)
    assert torch.equal(gradient, torch.func.grad(lambda row: module(row).sum())(x))


def test_the_cpu_as_default_device() -> None:
    module = nn.LSTM(5, 7, batch_first=True, **DOUBLE)
    fast = accelerate(module)
    before = torch.get_default_device()
    try:
        torch.set_default_device("cpu")
        assert_same(fast, module, X)
        assert fast.why_not is None
        with torch.device("cpu"):
            assert_same(accelerate(fast), module, X)
            assert fast.why_not is None
            with torch.device("meta"):
                outputs(fast, X)
        assert "the default device is meta" in (fast.why_not or "")
    finally:
        torch.set_default_device(None)
    assert torch.get_default_device() == before


class Model(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(5, 7, 2, bidirectional=True, batch_first=True, **DOUBLE)
        self.cell = nn.GRUCell(14, 3, **DOUBLE)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y, _ = self.lstm(x.cos())
        return self.cell(y[:, 1], self.cell(y[:, 0])).sin()


@pytest.mark.filterwarnings("ignore")  # of torch.jit and torch.export about themselves
def test_graphs() -> None:
    """Compile, export and trace: the same results; only compiled modules run on pyrnnx."""
    torch.manual_seed(0)
    model = Model().eval()
    fast = accelerate(model)
    with torch.no_grad():
        expected = model(X)

        def check(graph: Any) -> None:
            for _ in range(2):
                np.testing.assert_allclose(graph(X), expected, atol=TOLERANCE)

        check(torch.compile(fast, backend="eager"))
        assert (fast.lstm.why_not, fast.cell.why_not) == (None, None)
        for strict in (False, True):
            program = torch.export.export(fast, (X,), strict=strict)
            assert not any("pyrnnx" in str(node.target) for node in program.graph.nodes)
            check(program.module())
        check(torch.jit.trace(fast, (X,)))
        check(torch.fx.symbolic_trace(fast))
        assert fast.lstm.why_not is None
        check(fast)
        check(torch.jit.script(restore(fast)))


def test_cells_are_compiled_by_pytorch() -> None:
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append([str(node.target) for node in graph.graph.nodes])
        return graph

    class Steps(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.cell = accelerate(nn.GRUCell(5, 7, **DOUBLE))

        def forward(self, x: Any) -> Any:
            return self.cell(x.cos()).sin()

    steps = Steps()
    with torch.no_grad():
        compiled = torch.compile(steps, backend=backend, fullgraph=True)
        np.testing.assert_allclose(compiled(X[0]), steps(X[0]), atol=TOLERANCE)
        alone = torch.compile(accelerate(nn.GRUCell(5, 7, **DOUBLE)), backend=backend, fullgraph=True)
        np.testing.assert_allclose(alone(X[0]), alone._orig_mod(X[0]), atol=TOLERANCE)
    assert len(graphs) == 2
    assert all(any("gru_cell" in target for target in graph) for graph in graphs)


def test_many_threads() -> None:
    """16 threads call one module, while another changes its weights between two values."""
    module = nn.GRU(16, 32, 2, **DOUBLE)
    fast, other = accelerate(module), copy.deepcopy(module)
    inputs = [torch.randn(7, k % 3 + 1, 16, **DOUBLE) for k in range(16)]
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(-0.5)
        wanted = [[outputs(each, x)[0] for each in (module, other)] for x in inputs]
    failures: list[str] = []

    def call(k: int) -> None:
        for _ in range(100):
            Y = outputs(fast, inputs[k])[0]
            if min((Y - expected).abs().max() for expected in wanted[k]) > TOLERANCE:
                failures.append(f"thread {k}")

    def run(*extra: threading.Thread) -> None:
        threads = [*(threading.Thread(target=call, args=(k,)) for k in range(16)), *extra]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    run()
    assert failures == []
    assert fast.why_not is None
    with torch.no_grad():  # each parameter is another tensor at once, so a call sees old or new ones of each
        module.load_state_dict(other.state_dict())
    run()
    assert failures == []
    for k, x in enumerate(inputs):
        np.testing.assert_allclose(outputs(fast, x)[0], wanted[k][1], atol=TOLERANCE)


def test_the_limit_of_threads() -> None:
    module = nn.LSTM(32, 64, **DOUBLE)
    fast, x = accelerate(module), torch.randn(50, 16, 32, **DOUBLE)
    before = torch.get_num_threads()
    try:
        results = []
        for threads in (1, 2, before):
            torch.set_num_threads(threads)
            results.append(outputs(fast, x))
            assert_same(fast, module, x)
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))
