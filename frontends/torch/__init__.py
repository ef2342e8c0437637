"""PyTorch front-end: accelerated modules, and recurrent modules and their state_dicts as a `pyrnnx.Stack`."""

from .accelerate import accelerate, restore, why_not
from .modules import from_module
from .state_dict import from_state_dict

__all__ = ["accelerate", "from_module", "from_state_dict", "restore", "why_not"]
