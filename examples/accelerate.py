"""Accelerate the recurrent layers inside a PyTorch model, in one line.

    pip install -e ".[plot]" torch
    python examples/accelerate.py

The model tags each frame of a recording: a convolution, two bidirectional GRU layers, and an LSTM cell that runs frame
by frame. The example compares results and times, changes a weight, and shows which calls PyTorch still runs.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Any

from shared import new_figure, run, save

from pyrnnx.bench.timing import measure
from pyrnnx.frontends.torch import accelerate

try:
    torch: Any = import_module("torch")
except ImportError:
    sys.exit("PyTorch is not installed: pip install torch")

FEATURES, UNITS, TAGS = 40, 64, 8


class Tagger(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.filters = torch.nn.Conv1d(FEATURES, UNITS, 5, padding=2)
        self.encoder = torch.nn.GRU(UNITS, UNITS, num_layers=2, bidirectional=True, batch_first=True)
        self.cell = torch.nn.LSTMCell(2 * UNITS, UNITS)
        self.tags = torch.nn.Linear(UNITS, TAGS)

    def forward(self, x: Any) -> Any:
        """Return scores [batch_size, frames, TAGS] of features [batch_size, frames, FEATURES]."""
        y, _ = self.encoder(self.filters(x.swapaxes(1, 2)).swapaxes(1, 2))
        states, rows = None, []
        for frame in y.unbind(1):
            states = self.cell(frame, states)
            rows.append(states[0])
        return self.tags(torch.stack(rows, 1))


def print_reasons(model: Tagger, title: str) -> None:
    """Print which engine ran the last call of each recurrent module."""
    print(title)
    for name in ("encoder", "cell"):
        reason = getattr(model, name).why_not
        print(f"    {name:8} {'pyrnnx' if reason is None else f'PyTorch: {reason}'}")


def draw(milliseconds: dict[int, dict[str, float]], output: str) -> None:
    figure = new_figure(7, 4)
    axis = figure.subplots()
    for name, colour in (("PyTorch", "tab:gray"), ("pyrnnx", "tab:orange")):
        axis.plot(list(milliseconds), [row[name] for row in milliseconds.values()], "o-", color=colour, label=name)
    axis.set(xlabel="frames", ylabel="time of a call, ms (one thread; lower is faster)", xscale="log", yscale="log")
    axis.set_title("One recording, the whole model")
    axis.legend()
    save(figure, output)


def main() -> None:
    parser = argparse.ArgumentParser(description="Accelerate the recurrent layers inside a PyTorch model.")
    parser.add_argument("--output", default="accelerate.png", help="picture to write")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = Tagger().eval()
    fast = accelerate(model)  # shares all parameters with `model`

    milliseconds: dict[int, dict[str, float]] = {}
    print("frames   difference   PyTorch   pyrnnx")
    for frames in (1, 10, 100, 300):
        x = torch.randn(1, frames, FEATURES)
        with torch.inference_mode():
            difference = float((model(x) - fast(x)).abs().max())
            timings = measure({"PyTorch": lambda x=x: model(x), "pyrnnx": lambda x=x: fast(x)})  # type: ignore[misc]
        milliseconds[frames] = {name: 1e3 * min(timings.seconds[name]) for name in timings.seconds}
        times = "".join(f"{milliseconds[frames][name]:7.2f} ms" for name in ("PyTorch", "pyrnnx"))
        print(f"{frames:6}   {difference:10.1e}{times}")

    print_reasons(fast, "\nin inference mode:")
    with torch.inference_mode():
        before = fast(x)
        model.encoder.weight_hh_l0.data.mul_(0.5)  # also seen, although PyTorch does not count such changes
        print(f"\na weight changes: the results change by {float((fast(x) - before).abs().max()):.3f}", end="")
        print(f" and still differ from PyTorch's by {float((model(x) - fast(x)).abs().max()):.1e}")
    fast(x).sum().backward()
    print_reasons(fast, "\nin training:")
    draw(milliseconds, arguments.output)


if __name__ == "__main__":
    run(main)
