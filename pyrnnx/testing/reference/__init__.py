"""The recurrent operators of ONNX and OpenVINO in float64 NumPy: an oracle to be read beside the operators' texts.

- `cells`: the equations, and the loop over time. One step of all rows at a time; no row sees another.
- `activations`: the functions, and which of them an operator uses with which parameters.
- `onnx_operators`: `rnn`, `gru`, `lstm`, of every opset.
- `openvino_sequences`, `openvino_cells`: `rnn_sequence`, `gru_sequence`, `lstm_sequence`, `lstm_sequence_1`,
  `rnn_cell`, `gru_cell`, `lstm_cell`, `lstm_cell_1`.

It imports NumPy and the standard library only, and shares no code with the rest of pyrnnx. Where the texts are silent
it follows what ONNX Runtime and OpenVINO agree on:

- a row's last state is the one after its last valid step; Y is zero beyond the row's length; a row of length 0 is zero
- ``reverse`` runs a row's valid steps backwards, Y stays in the order of time
- ``clip`` bounds what goes into f and g, not what goes into the LSTM's h
- with ``input_forget`` ONNX's forget gate is 1 - i and its parameters are unused; OpenVINO has it the other way round:
  its input gate is 1 - f, and its parameters are unused

>>> from pyrnnx.testing import reference
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
    # what they are made of
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


def run(operator: str, *arrays: Any, **arguments: Any) -> tuple[Any, ...]:
    """An operator by its name.

    Parameters
    ----------
    operator : str
        Of `OPERATORS`: "RNN", "GRU", "LSTM" of ONNX; "RNNSequence-5", "LSTMCell-1" and so on of OpenVINO.
    *arrays, **arguments
        As of the function of that operator. What only another operator of the same convention has may be given as well,
        with its default value: ``input_forget=0`` to a GRU.

    Returns
    -------
    tuple
        Its outputs in order; with ``steps=True`` the dict of every step's values after them.

    Raises
    ------
    OracleError
        No such operator or argument; a shape or value that the text does not allow.
    """
    if operator not in OPERATORS:
        raise OracleError(f"operator is {operator!r}; expected {', '.join(OPERATORS)}")
    known = inspect.signature(OPERATORS[operator]).parameters
    given = {name: value for name, value in arguments.items() if name in known}
    for name in arguments.keys() - given.keys():
        if not _means_nothing(operator, name, arguments[name]):
            raise OracleError(f"{operator}: {name} is no argument; expected {', '.join(known)}")
    results = OPERATORS[operator](*arrays, **given)
    return results if isinstance(results, tuple) else (results,)


def _means_nothing(operator: str, name: str, value: Any) -> bool:
    """Whether an argument has its default value, and belongs to another operator of the same convention."""
    family = [function for other, function in OPERATORS.items() if ("-" in other) == ("-" in operator)]
    parameters = (inspect.signature(function).parameters.get(name) for function in family)
    defaults = [one.default for one in parameters if one is not None]
    return any(value is default or (np.ndim(value) == 0 and value == default) for default in defaults)
