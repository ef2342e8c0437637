"""The recurrent operators of ONNX and OpenVINO in float64 NumPy: an oracle to compare with the specifications.

- `cells`: the equations and the loop over time, which runs one step of all rows at a time. Rows are independent.
- `activations`: the functions, and the choice of functions and parameters of an operator.
- `onnx_operators`: `rnn`, `gru`, `lstm`, of every opset.
- `openvino_sequences`, `openvino_cells`: `rnn_sequence`, `gru_sequence`, `lstm_sequence`, `lstm_sequence_1`,
  `rnn_cell`, `gru_cell`, `lstm_cell`, `lstm_cell_1`.

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

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from .activations import ACTIVATIONS, ALPHA, BETA, DEFAULT_ACTIVATIONS, Activation, resolve_activations
from .arguments import OracleError
from .cells import STEP_VALUES
from .onnx_operators import GATES, gru, lstm, rnn
from .openvino_cells import gru_cell, lstm_cell, lstm_cell_1, rnn_cell
from .openvino_sequences import gru_sequence, lstm_sequence, lstm_sequence_1, rnn_sequence

__all__ = [
    # any operator
    "OPERATORS",
    "OracleError",
    "run",
    # ONNX
    "gru",
    "lstm",
    "rnn",
    # OpenVINO
    "gru_cell",
    "gru_sequence",
    "lstm_cell",
    "lstm_cell_1",
    "lstm_sequence",
    "lstm_sequence_1",
    "rnn_cell",
    "rnn_sequence",
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

OPERATORS: dict[str, Callable[..., Any]] = {
    "RNN": rnn,
    "GRU": gru,
    "LSTM": lstm,
    "RNNSequence-5": rnn_sequence,
    "GRUSequence-5": gru_sequence,
    "LSTMSequence-5": lstm_sequence,
    "LSTMSequence-1": lstm_sequence_1,
    "RNNCell-1": rnn_cell,
    "GRUCell-3": gru_cell,
    "LSTMCell-4": lstm_cell,
    "LSTMCell-1": lstm_cell_1,
}
_PARAMETERS = {name: inspect.signature(function).parameters for name, function in OPERATORS.items()}


def run(operator: str, *arrays: Any, **arguments: Any) -> tuple[Any, ...]:
    """Run an operator by name.

    Parameters
    ----------
    operator : str
        Key of `OPERATORS`: "RNN", "GRU", "LSTM" for ONNX; "RNNSequence-5", "LSTMCell-1" and so on for OpenVINO.
    *arrays, **arguments
        Arguments of the operator's function. Arguments that only another operator of the same format has are allowed
        with their default values: ``input_forget=0`` for a GRU.

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
    known = _PARAMETERS[operator]
    passed = {name: value for name, value in arguments.items() if name in known}
    for name in arguments.keys() - passed.keys():
        if not _is_default_elsewhere(operator, name, arguments[name]):
            raise OracleError(f"{operator}: argument {name} is unknown; expected {', '.join(known)}")
    results = OPERATORS[operator](*arrays, **passed)
    return results if isinstance(results, tuple) else (results,)


def _is_default_elsewhere(operator: str, name: str, value: Any) -> bool:
    """Return whether another operator of the same format has this argument with this default value."""
    family = [known for other, known in _PARAMETERS.items() if ("-" in other) == ("-" in operator)]
    parameters = (known.get(name) for known in family)
    defaults = [parameter.default for parameter in parameters if parameter is not None]
    return any(value is default or (np.ndim(value) == 0 and value == default) for default in defaults)


def __dir__() -> list[str]:
    return __all__
