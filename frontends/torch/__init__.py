"""Weights of PyTorch: its recurrent modules, and what their state_dict holds, as a `pyrnnx.Stack`."""

from .modules import from_module
from .state_dict import from_state_dict

__all__ = ["from_module", "from_state_dict"]
