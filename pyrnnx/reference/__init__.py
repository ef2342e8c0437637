"""The recurrent operators of ONNX and OpenVINO in float64 NumPy: an oracle to compare with the specifications.

- `cells`: the equations and the loop over time, which runs one step of all rows at a time. Rows are independent.
- `activations`: the functions, and the choice of functions and parameters of an operator.
- `operators`: `rnn`, `gru`, `lstm` of ONNX in every opset; `run`: any operator by its name. `OPERATORS` lists the
  arguments of each with their defaults.

It imports only NumPy and the standard library, and shares no code with the rest of pyrnnx. If the specifications are
silent, it follows what ONNX Runtime and OpenVINO agree on:

- the last state of a row is the state after its last valid step; Y is zero beyond the row's length; all results of a
  row of length 0 are zero
- ``reverse`` runs the valid steps of a row backwards; Y stays in the order of time
- ``clip`` bounds the arguments of f and g, but not of the LSTM's h
- with ``input_forget``, ONNX's forget gate is 1 - i, and its parameters are unused; OpenVINO's input gate is 1 - f, and
  its parameters are unused

>>> from pyrnnx import reference
>>> Y, Y_h, Y_c, values = reference.lstm(X, W, R, steps=True)  # doctest: +SKIP
>>> values["f"][t, direction, row, unit]  # the forget gate of one step  # doctest: +SKIP
"""

from __future__ import annotations

from .activations import ACTIVATIONS, ALPHA, BETA, DEFAULT_ACTIVATIONS, Activation, resolve_activations
from .arguments import OracleError
from .cells import STEP_VALUES
from .operators import GATES, OPERATORS, gru, lstm, rnn, run

__all__ = [
    # any operator
    "OPERATORS",
    "OracleError",
    "run",
    # ONNX
    "gru",
    "lstm",
    "rnn",
    # their parts
    "ACTIVATIONS",
    "ALPHA",
    "Activation",
    "BETA",
    "DEFAULT_ACTIVATIONS",
    "GATES",
    "STEP_VALUES",
    "resolve_activations",
]
