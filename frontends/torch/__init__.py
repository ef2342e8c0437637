"""PyTorch front-end: recurrent modules and their state_dicts as a `pyrnnx.Stack`."""

from .modules import from_module
from .state_dict import from_state_dict

__all__ = ["from_module", "from_state_dict"]


def __dir__() -> list[str]:
    return __all__
