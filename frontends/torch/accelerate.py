"""Acceleration of the recurrent modules inside any module of PyTorch."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pyrnnx.errors import ArgumentError, UnsupportedError, shown

from .modules import KINDS, torch_package


def accelerate(module: Any, *, inplace: bool = False) -> Any:
    """Let pyrnnx run the forward of every torch.nn.RNN, GRU, LSTM, RNNCell, GRUCell and LSTMCell inside a module.

    Parameters
    ----------
    module : torch.nn.Module
        A recurrent module, or any module that contains one.
    inplace : bool
        False: return a copy that shares all parameters and buffers with `module`. True: change `module` itself.

    Returns
    -------
    torch.nn.Module
        The module, with the same names, parameters, hooks and ``state_dict``. Its recurrent modules have subclasses of
        their own classes, and the attribute ``why_not``: why PyTorch ran the last call, or None if pyrnnx did.

    Raises
    ------
    ArgumentError
        It is not a module, or contains no recurrent module with PyTorch's forward and without parametrizations.
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
    torch = torch_package("accelerate")
    if not isinstance(module, torch.nn.Module):
        raise ArgumentError(f"accelerate: module is {shown(module)}; expected a torch.nn.Module")
    if not isinstance(inplace, bool):
        raise ArgumentError(f"accelerate: inplace is {shown(inplace)}; expected True or False")
    classes = _classes(torch)
    if not any(classes.can_replace(inner) or classes.is_replaced(inner) for inner in module.modules()):
        expected = ", ".join(f"torch.nn.{kind}" for kind in KINDS)
        raise ArgumentError(
            f"accelerate: {type(module).__name__} contains none of {expected} with PyTorch's own forward and "
            "without parametrizations; expected at least one"
        )
    if not inplace:
        shared = (*module.parameters(), *module.buffers())
        module = deepcopy(module, {id(tensor): tensor for tensor in shared})
    for inner in list(module.modules()):
        if classes.can_replace(inner):
            classes.replace(inner)
    return module


def _classes(torch: Any) -> Any:
    """Return the module of accelerated classes, which needs internals of PyTorch."""
    try:
        from . import accelerated
    except AttributeError as error:
        raise UnsupportedError(
            f"accelerate: PyTorch {torch.__version__} has other internals ({error}); expected 2.13, which is tested"
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
    torch = torch_package("restore")
    if not isinstance(module, torch.nn.Module):
        raise ArgumentError(f"restore: module is {shown(module)}; expected a torch.nn.Module")
    classes = _classes(torch)
    for name, inner in module.named_modules():
        if classes.is_replaced(inner) and not classes.put_back(inner):
            raise UnsupportedError(
                f"restore: {shown(name) if name else type(inner).__name__} was parametrized after accelerate; "
                "remove its parametrizations first"
            )
    return module
