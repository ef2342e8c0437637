"""Keras 3 front-end: recurrent layers, their arrays, and .keras files as a `pyrnnx.Stack`."""

from .file import from_file
from .layers import from_layer
from .weights import from_weights

__all__ = ["from_file", "from_layer", "from_weights"]
