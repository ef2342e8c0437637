"""The recurrent operators of ONNX and OpenVINO in float64 NumPy: an oracle to compare with the specifications.

- `cells`: the equations and the loop over time, which runs one step of all rows at a time. Rows are independent.
- `activations`: the functions, and the choice of functions and parameters of an operator.
- `onnx_operators`: `rnn`, `gru`, `lstm`, of every opset.
- `openvino_operators`: RNNSequence-5, GRUSequence-5, LSTMSequence-5, LSTMSequence-1, RNNCell-1, GRUCell-3, LSTMCell-4,
  LSTMCell-1.
- `run`: any operator by its name; `OPERATORS` lists the arguments of each with their defaults.

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

from typing import Any

from . import onnx_operators, openvino_operators
from .activations import ACTIVATIONS, ALPHA, BETA, DEFAULT_ACTIVATIONS, Activation, resolve_activations
from .arguments import OracleError
from .cells import STEP_VALUES
from .onnx_operators import GATES, gru, lstm, rnn

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

# The arguments of each operator, with their defaults.
OPERATORS = {**onnx_operators.ARGUMENTS, **openvino_operators.ARGUMENTS}


def run(operator: str, *arrays: Any, **arguments: Any) -> tuple[Any, ...]:
    """Run an operator by name.

    Parameters
    ----------
    operator : str
        Key of `OPERATORS`: "RNN", "GRU", "LSTM" for ONNX; "RNNSequence-5", "LSTMCell-1" and so on for OpenVINO.
    *arrays, **arguments
        Arguments of the operator: `rnn`, `gru`, `lstm` and `openvino_operators.run` describe them. Arguments that only
        another operator of the same format has are allowed with their default values: ``input_forget=0`` for a GRU.

    Returns
    -------
    tuple
        The outputs in order; with ``steps=True``, a dict of the values of every step follows.

    Raises
    ------
    OracleError
        The operator or an argument is unknown, or the specification does not allow a shape or value.
    """
    if operator not in OPERATORS:
        raise OracleError(f"operator is {operator!r}; expected {', '.join(OPERATORS)}")
    if operator in onnx_operators.ARGUMENTS:
        return onnx_operators.run(operator, *arrays, **arguments)
    return openvino_operators.run(operator, *arrays, **arguments)


def __dir__() -> list[str]:
    return __all__
