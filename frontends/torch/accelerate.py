"""Acceleration of the recurrent modules inside any module of PyTorch."""

from __future__ import annotations

from typing import Any

from pyrnnx.errors import ArgumentError, UnsupportedError, listed, shortened, shown

from .modules import KINDS, torch_package

_PLAIN = "is not accelerated: call accelerate(model), or use the copy that it returned"


def accelerate(module: Any, *, inplace: bool = False) -> Any:
    """Let pyrnnx run the forward of every torch.nn.RNN, GRU, LSTM, RNNCell, GRUCell and LSTMCell inside a module.

    Parameters
    ----------
    module : torch.nn.Module
        A recurrent module, or any module that contains one.
    inplace : bool
        False: return a copy that shares all parameters and buffers with `module`, and tensors with a history of
        gradients. True: change `module` itself.

    Returns
    -------
    torch.nn.Module
        The module, with the same names, parameters, hooks and ``state_dict``. Its recurrent modules have subclasses of
        their own classes, and the attribute ``why_not``: why PyTorch ran the last call, or None if pyrnnx did.

    Raises
    ------
    ArgumentError
        It is not a module, or contains no recurrent module with PyTorch's forward and without parametrizations.
    UnsupportedError
        The module cannot be copied, for example because it has a lock or a generator; pass ``inplace=True``.
    PyrnnxError
        PyTorch is not installed, or too old.

    Notes
    -----
    pyrnnx runs calls on CPU tensors that need no gradients, in float32, float64, float16 or bfloat16; PyTorch runs all
    others: with gradients, dropout in training mode, proj_size, autocast, a functorch transform, a tensor subclass, or
    while torch.compile, torch.export or torch.jit records a graph. Errors are PyTorch's own.

    The first call packs the weights, which takes as much memory as the parameters. Each call compares a digest of all
    parameters' bytes, so that it sees any change of them, however it was made, and packs them again.
    """
    classes = _classes("accelerate", module)
    if not isinstance(inplace, bool):
        raise ArgumentError(f"accelerate: inplace is {shown(inplace)}; expected True or False")
    recurrent = classes.recurrent_modules(module)
    if all(classes.why_not_replaced(inner) for inner in recurrent.values()):
        reasons = [f"{shown(name or type(module).__name__)}: {reason}" for name, reason in why_not(module).items()]
        kinds = ", ".join(f"torch.nn.{kind}" for kind in KINDS)
        causes = listed(reasons) or "none at all"
        raise ArgumentError(
            f"accelerate: {type(module).__name__} has no recurrent module to replace ({causes}); "
            f"expected one of {kinds}, with PyTorch's own forward and without parametrizations"
        )
    if not inplace:
        try:
            module = classes.copied(module)
        except Exception as error:  # of any attribute of any submodule
            raise UnsupportedError(
                f"accelerate: the model cannot be copied ({shortened(str(error))}); pass inplace=True to change the "
                "model itself"
            ) from error
    for inner in classes.recurrent_modules(module).values():
        if classes.why_not_replaced(inner) is None and not classes.is_replaced(inner):
            classes.replace(inner)
    return module


def why_not(module: Any) -> dict[str, str | None]:
    """Return why PyTorch runs each torch.nn.RNN, GRU, LSTM, RNNCell, GRUCell and LSTMCell inside a module.

    Parameters
    ----------
    module : torch.nn.Module
        A module that `accelerate` returned, or any other.

    Returns
    -------
    dict of str to str or None
        For the name of each recurrent module: why PyTorch ran its last call, or why `accelerate` left the module as it
        is; None if pyrnnx ran the last call.

    Raises
    ------
    ArgumentError
        It is not a module.
    """
    classes = _classes("why_not", module)
    return {
        name: inner.why_not if classes.is_replaced(inner) else f"it {classes.why_not_replaced(inner) or _PLAIN}"
        for name, inner in classes.recurrent_modules(module).items()
    }


def _classes(label: str, module: Any) -> Any:
    """Return the module of accelerated classes, which needs internals of PyTorch, after a check of the argument."""
    torch = torch_package(label)
    if not isinstance(module, torch.nn.Module):
        raise ArgumentError(f"{label}: module is {shown(module)}; expected a torch.nn.Module")
    try:
        from . import accelerated
    except AttributeError as error:
        raise UnsupportedError(
            f"{label}: PyTorch {torch.__version__} has other internals ({error}); expected 2.13, with which it was run"
        ) from error
    return accelerated


def restore(module: Any) -> Any:
    """Undo `accelerate` in place: give every recurrent module inside `module` its own class again.

    Parameters
    ----------
    module : torch.nn.Module

    Returns
    -------
    torch.nn.Module
        The same module.

    Raises
    ------
    ArgumentError
        It is not a module.
    UnsupportedError
        An accelerated module was parametrized later; remove its parametrizations first.
    """
    classes = _classes("restore", module)
    for name, inner in module.named_modules():
        if classes.is_replaced(inner) and not classes.put_back(inner):
            raise UnsupportedError(
                f"restore: {shown(name) if name else type(inner).__name__} was parametrized after accelerate; "
                "remove its parametrizations first"
            )
    return module
