"""ONNX's activation functions by Keras 3's names."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pyrnnx._internal.scalars import number
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.operator.op import Activation

BY_NAME: Mapping[str, Activation] = MappingProxyType(
    {
        "tanh": Activation("Tanh"),
        "sigmoid": Activation("Sigmoid"),
        "relu": Activation("Relu"),
        "linear": Activation("Affine", 1.0, 0.0),
        "hard_sigmoid": Activation("HardSigmoid", 1 / 6, 0.5),  # relu6(x + 3) / 6; Keras 2 had another function
        "softsign": Activation("Softsign"),
        "softplus": Activation("Softplus"),
        "elu": Activation("Elu", 1.0),
        "leaky_relu": Activation("LeakyRelu", 0.2),
    }
)
# Activations from the configuration of a keras.layers class
_LAYERS: Mapping[str, Callable[[str, Mapping[str, Any]], Activation]] = {
    "LeakyReLU": lambda label, config: Activation("LeakyRelu", _slope(label, config, "negative_slope", 0.3)),
    "ELU": lambda label, config: Activation("Elu", _slope(label, config, "alpha", 1.0)),
}


def _slope(label: str, config: Mapping[str, Any], name: str, default: float) -> float:
    slope = number(label, name, config.get(name, default))
    if not math.isfinite(slope):
        raise ArgumentError(f"{label}: {name} is {slope}; expected a finite number")
    return slope


def activation(label: str, argument: str, value: Any) -> Activation:
    """Return the activation of a name of Keras, or of its configuration of a layer or a custom function."""
    if value is None:
        return BY_NAME["linear"]
    if isinstance(value, Activation):
        return value
    if isinstance(value, Mapping):
        name, config = value.get("class_name"), value.get("config")
        of_layer = _LAYERS.get(name) if isinstance(name, str) and value.get("module") == "keras.layers" else None
        if of_layer is not None and isinstance(config, Mapping):
            return of_layer(f"{label}: {argument}", config)
        name = config if isinstance(config, str) else name
        raise UnsupportedError(f"{label}: {argument} is the custom object {shown(name)}; {_expected()}")
    if not isinstance(value, str):
        raise ArgumentError(f"{label}: {argument} is {shown(value)}; {_expected()}")
    if value not in BY_NAME:
        raise UnsupportedError(f"{label}: {argument} is {shown(value)}; {_expected()}")
    return BY_NAME[value]


def _expected() -> str:
    return f"expected one of {', '.join(BY_NAME)}"
