"""Classes of accelerated modules: PyTorch's own classes with another forward."""

from __future__ import annotations

import copyreg
from copy import deepcopy
from functools import cache
from typing import Any

import torch

from .calls import Runner
from .modules import KINDS

BASES = tuple(getattr(torch.nn, kind) for kind in KINDS)
_RUNNER, _REASON, _NOT_CALLED = "_pyrnnx_runner", "_pyrnnx_reason", "the module has not been called"


def _hide_from_dynamo(function: Any) -> None:
    """Let torch.compile run a function's frames, and those below them, as they are."""
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(skip, skip))


_hide_from_dynamo(Runner.run)


@cache
def accelerated_class(base: Any) -> Any:
    """Return a subclass of a module's class that has the same name and computes the same, on pyrnnx where it can."""
    own_forward = base.forward

    def forward(self: Any, input: Any, hx: Any = None) -> Any:
        if torch.compiler.is_compiling():  # also torch.export: the graph contains PyTorch's operators
            return own_forward(self, input, hx)
        attributes = self.__dict__  # Module.__setattr__ takes a microsecond
        results = attributes[_RUNNER].run(self, input, hx)
        if isinstance(results, str):
            attributes[_REASON] = results
            return own_forward(self, input, hx)
        attributes[_REASON] = None
        return results

    forward.__qualname__ = own_forward.__qualname__  # in Python's errors about arguments

    # torch.compile decides by the file what it compiles: this function names that of the forward it replaces.
    code = own_forward.__code__
    forward.__code__ = forward.__code__.replace(co_filename=code.co_filename, co_firstlineno=code.co_firstlineno)

    def why_not(self: Any) -> str | None:
        """Reason why PyTorch ran the last call; None if pyrnnx did."""
        reason: str | None = self.__dict__[_REASON]
        return reason

    def __reduce_ex__(self: Any, protocol: Any) -> Any:  # noqa: N807
        # The class exists in this process only: name its base instead.
        function, arguments, *rest = super(accelerated, self).__reduce_ex__(max(protocol, 2))
        if function is not copyreg.__newobj__ or arguments[0] is not accelerated:  # type: ignore[attr-defined]
            return (function, arguments, *rest)
        return (new, (base,), *rest)

    members = {
        "forward": forward,
        "why_not": property(why_not),
        "__reduce_ex__": __reduce_ex__,
        "__module__": base.__module__,
        "__qualname__": base.__qualname__,
        "__doc__": base.__doc__,
        "_pyrnnx_base": base,
    }
    accelerated: Any = type(base.__name__, (base,), members)
    return accelerated


def new(base: Any) -> Any:
    """Return an accelerated module without attributes, for copy and pickle."""
    cls = accelerated_class(base)
    return cls.__new__(cls)


class _Sharing(torch.overrides.TorchFunctionMode):
    """Copies that share the tensors that PyTorch refuses to copy, those with a history of gradients."""

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function is torch.Tensor.__deepcopy__ and not args[0].is_leaf:
            return args[0]  # for example a weight that weight_norm computed, or the last state
        return function(*args, **(kwargs or {}))


def copied(module: Any) -> Any:
    """Return a deep copy of a module that shares its parameters and buffers."""
    shared = (*module.parameters(), *module.buffers())
    with _Sharing():
        copy = deepcopy(module, {id(tensor): tensor for tensor in shared})
    for inner in copy.modules():  # PyTorch's recurrent modules copy what compile() made, which calls the original
        inner.__dict__.pop("_compiled_call_impl", None)
    return copy


def recurrent_modules(module: Any) -> dict[str, Any]:
    return {name: inner for name, inner in module.named_modules() if isinstance(inner, BASES)}


def why_not_replaced(module: Any) -> str | None:
    """Return why a recurrent module cannot be replaced; None if it can, or is."""
    if is_replaced(module):
        return None
    kind = next(kind for kind in BASES if isinstance(module, kind))
    if type(module).forward is not kind.forward or "forward" in module.__dict__:
        return "has a forward of its own"
    return "is parametrized" if torch.nn.utils.parametrize.is_parametrized(module) else None


def is_replaced(module: Any) -> bool:
    return hasattr(type(module), "_pyrnnx_base")


def replace(module: Any) -> None:
    """Change the class of a module in place to one whose calls run on pyrnnx."""
    base: Any = type(module)
    module.__class__ = accelerated_class(base)
    module.__dict__.update({_RUNNER: Runner(), _REASON: _NOT_CALLED})


def put_back(module: Any) -> bool:
    """Undo `replace`; return False if another class, such as that of a parametrized module, was made on top of it."""
    if "_pyrnnx_base" not in type(module).__dict__:
        return False
    module.__class__ = type(module)._pyrnnx_base
    for name in (_RUNNER, _REASON):
        module.__dict__.pop(name, None)
    return True
