"""Decompression of weights: f16 stores their scales, but the computation is in f32.

Const i8 -> Convert to f16 -> (Subtract a zero point) -> Multiply by a scale -> (Reshape, Transpose) -> Convert to f32

is computed in f32 from the first Convert on, as in OpenVINO's CPU plugin.
"""

from __future__ import annotations

from ...ir.layer import NetLayer, Output
from ..context import LayerContext, translate_layer, translator

_MOVES = ("reshape", "transpose", "squeeze", "unsqueeze")


def decompressed(ctx: LayerContext) -> str | None:
    """Translate the last Convert of this pattern in f32; return None for any other Convert."""
    chain: list[NetLayer] = []
    layer = ctx.layer.sources[0].layer
    while layer.type.lower() in _MOVES and layer.sources and _is_half(layer):
        chain.append(layer)
        layer = layer.sources[0].layer
    leaves = _leaves(layer, "multiply", chain)
    if leaves is None or any(translator(layer) is None for layer in chain):
        return None
    values = ctx.values.overridable()
    for leaf in leaves:
        values.names[leaf] = _widened(ctx, leaf)
    for layer in reversed(chain):
        (values.names[Output(layer, 0)],) = translate_layer(layer, values)
    return values.names[ctx.layer.sources[0]]


def _leaves(layer: NetLayer, kind: str, chain: list[NetLayer]) -> list[Output] | None:
    """Return codes, zero point and scale, and add the layers between them to `chain`; None for another pattern."""
    if layer.type.lower() != kind or not _is_half(layer) or len(layer.sources) != 2:
        return None
    chain.append(layer)
    codes, other = layer.sources
    if kind == "multiply" and codes.layer.type == "Const":
        codes, other = other, codes
    if not _is_constant(other):
        return None
    if kind == "multiply" and codes.layer.type.lower() == "subtract":
        leaves = _leaves(codes.layer, "subtract", chain)
        return None if leaves is None else [*leaves, other]
    return [codes, other] if _is_converted(codes.layer, 8) else None


def _is_half(layer: NetLayer) -> bool:
    return len(layer.outputs) == 1 and layer.outputs[0].precision == "FP16"


def _is_converted(layer: NetLayer, bits: int) -> bool:
    """Return whether a layer converts a constant of at most so many bits per element to f16."""
    if layer.type.lower() != "convert" or layer.data.get("destination_type") != "f16" or not _is_half(layer):
        return False
    if len(layer.sources) != 1 or layer.sources[0].layer.type != "Const":
        return False
    own = layer.sources[0].layer.const_data.element_type.bits
    return own is not None and own <= bits


def _is_constant(output: Output) -> bool:
    """Return whether a zero point or scale is a constant of f16, or converted from another type."""
    layer = output.layer
    return (layer.type == "Const" and output.port.precision == "FP16") or _is_converted(layer, 32)


def _widened(ctx: LayerContext, leaf: Output) -> str:
    layer = leaf.layer if leaf.layer.type == "Const" else leaf.layer.sources[0].layer
    constant = Output(layer, 0)
    if layer.const_data.element_type.stored_only:
        array = ctx.values.array(constant)
        assert array is not None
        return ctx.converted(array, "float32")
    return ctx.cast(ctx.values.name(constant), "float32")
