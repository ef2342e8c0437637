"""Activation functions, and their choice from the attributes of an operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from .arguments import Array, OracleError


def sigmoid(x: Array) -> Array:
    e = np.exp(-np.abs(x))  # never overflows; 1/(1 + e^-x) = e^x/(1 + e^x)
    return np.where(x >= 0, 1.0, e) / (1.0 + e)


def softsign(x: Array) -> Array:
    return np.where(np.isinf(x), np.sign(x), x / (1.0 + np.where(np.isinf(x), 0.0, np.abs(x))))


# (x, alpha, beta) -> y, below the formula of the specification. All return NaN for NaN.
ACTIVATIONS: dict[str, Callable[[Array, float, float], Array]] = {
    # max(0, x)
    "Relu": lambda x, alpha, beta: np.maximum(x, 0.0),
    # (1 - e^{-2x})/(1 + e^{-2x})
    "Tanh": lambda x, alpha, beta: np.tanh(x),
    # 1/(1 + e^{-x})
    "Sigmoid": lambda x, alpha, beta: sigmoid(x),
    # alpha*x + beta
    "Affine": lambda x, alpha, beta: alpha * x + beta,
    # x if x >= 0 else alpha * x
    "LeakyRelu": lambda x, alpha, beta: np.where(x >= 0, x, alpha * x),
    # x if x >= alpha else 0; NaN is not below alpha
    "ThresholdedRelu": lambda x, alpha, beta: np.where(x < alpha, 0.0, x),
    # alpha*Tanh(beta*x)
    "ScaledTanh": lambda x, alpha, beta: alpha * np.tanh(beta * x),
    # min(max(alpha*x + beta, 0), 1)
    "HardSigmoid": lambda x, alpha, beta: np.minimum(np.maximum(alpha * x + beta, 0.0), 1.0),
    # x if x >= 0 else alpha*(e^x - 1)
    "Elu": lambda x, alpha, beta: np.where(x >= 0, x, alpha * np.expm1(np.minimum(x, 0.0))),
    # x/(1 + |x|)
    "Softsign": lambda x, alpha, beta: softsign(x),
    # log(1 + e^x)
    "Softplus": lambda x, alpha, beta: np.logaddexp(0.0, x),
}

# Functions with this parameter, and its default in the ONNX operator of that name; no operator is called ScaledTanh.
ALPHA: dict[str, float | None] = {
    "Affine": 1.0,
    "LeakyRelu": 0.01,
    "ThresholdedRelu": 1.0,
    "ScaledTanh": None,
    "HardSigmoid": 0.2,
    "Elu": 1.0,
}
BETA: dict[str, float | None] = {"Affine": 0.0, "ScaledTanh": None, "HardSigmoid": 0.5}

# f, g, h of the equations, for one direction
DEFAULT_ACTIVATIONS = {"RNN": ("Tanh",), "GRU": ("Sigmoid", "Tanh"), "LSTM": ("Sigmoid", "Tanh", "Tanh")}

_CANONICAL = {name.lower(): name for name in ACTIVATIONS}


@dataclass(frozen=True)
class Activation:
    """A function with its parameters; alpha (beta) is 0 if the function does not have it."""

    name: str
    alpha: float
    beta: float

    def __call__(self, x: Array) -> Array:
        return ACTIVATIONS[self.name](x, self.alpha, self.beta)


def make_activation(
    operator: str, name: str, alpha: float | None, beta: float | None, threshold_shift: float
) -> Activation:
    """Return a function with its parameters, or their defaults for None."""
    parameters = []
    for parameter, passed, defaults in (("alpha", alpha, ALPHA), ("beta", beta, BETA)):
        value = defaults[name] if passed is None and name in defaults else passed
        if value is None and name in defaults:
            raise OracleError(f"{operator}: {name} needs {parameter}, which has no default")
        parameters.append(float(value) if value is not None and name in defaults else 0.0)
    shift = threshold_shift if name == "ThresholdedRelu" else 0.0
    return Activation(name, parameters[0] + shift, parameters[1])


def canonical_names(operator: str, names: Sequence[str]) -> list[str]:
    """Return names as the tables spell them; case is ignored."""
    if isinstance(names, str):
        raise OracleError(f"{operator}: activations is {names!r}; expected a list")
    for name in names:
        if not isinstance(name, str) or name.lower() not in _CANONICAL:
            raise OracleError(f"{operator}: activations contains {name!r}; expected {', '.join(ACTIVATIONS)}")
    return [_CANONICAL[name.lower()] for name in names]


def resolve_activations(
    operator: str,
    num_directions: int,
    *,
    names: Sequence[str] | None = None,
    alphas: Sequence[float] | None = (),
    betas: Sequence[float] | None = (),
    threshold_shift: float = 0.0,
) -> list[list[Activation]]:
    """Return ONNX's functions, a list per direction. Each function with an alpha (a beta) consumes the next value.

    Parameters
    ----------
    operator : str
        "RNN", "GRU" or "LSTM".
    num_directions : int
    names : sequence of str, optional
        The attribute activations: forward, then reverse. An RNN with one direction uses the first of two names, because
        the default of its operator has two.
    alphas, betas : sequence of float
        The attributes activation_alpha and activation_beta. Default for missing values: the ONNX operator's.
    threshold_shift : float
        Offset added to every alpha of ThresholdedRelu.

    Raises
    ------
    OracleError
        A name or the number of names is not allowed, ScaledTanh lacks a parameter, or there are too many parameters.
    """
    default = DEFAULT_ACTIVATIONS[operator]
    count = len(default) * num_directions
    names = canonical_names(operator, names or default * num_directions)
    if operator == "RNN" and len(names) == 2:
        names = names[:count]
    if len(names) != count:
        raise OracleError(f"{operator}: activations has {len(names)} names; expected {count}")
    unused = {"activation_alpha": list(alphas or ()), "activation_beta": list(betas or ())}
    functions = []
    for name in names:
        alpha = unused["activation_alpha"].pop(0) if name in ALPHA and unused["activation_alpha"] else None
        beta = unused["activation_beta"].pop(0) if name in BETA and unused["activation_beta"] else None
        functions.append(make_activation(operator, name, alpha, beta, threshold_shift))
    for attribute, values in unused.items():
        if values:
            raise OracleError(f"{operator}: {attribute} has {values} left over; {', '.join(names)} have no more")
    return [functions[start : start + len(default)] for start in range(0, count, len(default))]


def activations_by_place(
    operation: str,
    cell: str,
    num_directions: int,
    names: Sequence[str] | None,
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    threshold_shift: float,
) -> list[Activation]:
    """Return OpenVINO's functions, one list for all directions, each with the parameters at the same index.

    OpenVINO writes the list twice for a bidirectional operation converted from ONNX with explicit activations.
    """
    default = DEFAULT_ACTIVATIONS[cell]
    names = canonical_names(operation, names or default)
    alphas, betas = list(alphas or ()), list(betas or ())
    if len(names) not in (len(default), num_directions * len(default)):
        raise OracleError(f"{operation}: activations has {len(names)} names; expected {len(default)}")
    for attribute, values in (("activations_alpha", alphas), ("activations_beta", betas)):
        if len(values) > len(names):
            raise OracleError(f"{operation}: {attribute} has {len(values)} values; expected at most {len(names)}")
    functions = [
        make_activation(operation, name, alpha, beta, threshold_shift)
        for name, alpha, beta in zip_longest(names, alphas, betas)
    ]
    if functions[len(default) :] not in ([], functions[: len(default)]):
        raise OracleError(f"{operation}: activations differ by direction; expected {len(default)}, for both directions")
    return functions[: len(default)]
