"""Conventions: the differences between formats as data (axes, gates, biases, names, required arguments).

The canonical arrangement is ONNX's with layout = 0. Its argument names (X, W, R, B, sequence_lens, initial_h,
initial_c, P; Y, Y_h, Y_c) are the keys of every table here. An axis is a letter: T seq_length, N batch_size,
D num_directions, I input_size, H hidden_size; an axis that a convention lacks (T and D of a cell) has length 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from pyrnnx._internal.dtypes import INTEGERS, AnyArray
from pyrnnx.errors import ArgumentError, UnsupportedError, shown
from pyrnnx.operator.op import CELLS, RecurrentOp

AXIS_NAMES: Mapping[str, str] = MappingProxyType(
    {"T": "seq_length", "N": "batch_size", "D": "num_directions", "I": "input_size", "H": "hidden_size"}
)
CALL_ARGUMENTS = ("X", "sequence_lens", "initial_h", "initial_c")  # in the order of a call
OUTPUTS = ("Y", "Y_h", "Y_c")  # Y_c of an LSTM only
STATES = ("initial_h", "initial_c", "Y_h", "Y_c")
SEPARATE, SUMMED = "separate: Wb, then Rb", "summed: Wb + Rb"
_MAPPINGS = ("axes", "gates", "names")  # fields of a Convention that are mappings


@dataclass(frozen=True, repr=False)
class Convention:
    """Immutable description of how a format arranges the arrays of a recurrent operator.

    Attributes
    ----------
    name : str
    axes : mapping
        Axis letters of X, Y, sequence_lens and "state" (all initial and last states).
    gates : mapping
        Order of the gates in W, R and B, by cell. Default for a cell: the ONNX order.
    bias : str
        `SEPARATE` or `SUMMED`. With linear_before_reset, a summed bias has Wb and Rb of gate h separately.
    names : mapping
        The convention's own names of arguments that have another name in ONNX.
    required : frozenset
        Arguments that are optional in ONNX and required here.
    length_dtypes : tuple of str
        Allowed dtypes of sequence_lens.
    peepholes : str
        Order of the gates in P of an LSTM; "" if the convention has no P.
    has_directions : bool
        Whether W, R and B have the axis of directions.
    gates_last : bool
        Whether the last axis of W and R contains the gates: [D, I, G*H] and [D, H, G*H].
    coupled_gate : str
        Gate that input_forget of an LSTM derives from the other. "f": f = 1 - i; "i": i = 1 - f. Its weights, bias and
        peephole are unused.
    """

    name: str
    axes: Mapping[str, str]
    gates: Mapping[str, str] = field(default_factory=dict)
    bias: str = SEPARATE
    names: Mapping[str, str] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    length_dtypes: tuple[str, ...] = ("int32",)
    peepholes: str = "iof"
    has_directions: bool = True
    coupled_gate: str = "f"
    gates_last: bool = False

    def __post_init__(self) -> None:
        for name in _MAPPINGS:
            value = getattr(self, name)
            if not isinstance(value, Mapping):
                raise ArgumentError(f"Convention {shown(self.name)}: {name} is {shown(value)}; expected a mapping")
            object.__setattr__(self, name, MappingProxyType(dict(value)))

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<Convention {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return partial(Convention, **values | {name: dict(values[name]) for name in _MAPPINGS}), ()

    def axes_of(self, argument: str) -> str:
        """Return the axis letters of an argument that is not a weight."""
        return self.axes["state" if argument in STATES else argument]

    def name_of(self, argument: str) -> str:
        """Return the convention's own name of a canonical argument."""
        return self.names.get(argument, argument)

    def gate_order(self, cell: str) -> str:
        return self.gates.get(cell, CELLS[cell].gates)


_OPENVINO_NAMES = {
    "sequence_lens": "sequence_lengths",
    "initial_h": "H",
    "initial_c": "C",
    "Y_h": "Ho",
    "Y_c": "Co",
}
ONNX_LAYOUTS = (
    Convention("ONNX, layout 0", axes={"X": "TNI", "Y": "TDNH", "state": "DNH", "sequence_lens": "N"}),
    Convention("ONNX, layout 1", axes={"X": "NTI", "Y": "NTDH", "state": "NDH", "sequence_lens": "N"}),
)
CANONICAL = ONNX_LAYOUTS[0]
KERNELS = Convention("kernels", axes=CANONICAL.axes, bias=SUMMED)
OPENVINO_SEQUENCE = Convention(
    "OpenVINO sequence",
    axes={"X": "NTI", "Y": "NDTH", "state": "NDH", "sequence_lens": "N"},
    gates={"LSTM": "fico"},
    bias=SUMMED,
    names=_OPENVINO_NAMES,
    required=frozenset({"B", "sequence_lens", "initial_h", "initial_c"}),
    length_dtypes=INTEGERS,
    peepholes="",
)
OPENVINO_CELL = Convention(
    "OpenVINO cell",
    axes={"X": "NI", "Y": "NH", "state": "NH", "sequence_lens": ""},
    gates={"LSTM": "fico"},
    bias=SUMMED,
    names=_OPENVINO_NAMES,
    required=frozenset({"B", "initial_h", "initial_c"}),
    peepholes="",
    has_directions=False,
)
# Version 1 of LSTMSequence and LSTMCell has peepholes and input_forget, coupled as in OpenVINO's own reference. B of
# the cell is optional.
OPENVINO_SEQUENCE_1 = replace(OPENVINO_SEQUENCE, name="OpenVINO sequence, version 1", peepholes="fio", coupled_gate="i")
OPENVINO_CELL_1 = replace(
    OPENVINO_CELL,
    name="OpenVINO cell, version 1",
    required=OPENVINO_CELL.required - {"B"},
    peepholes="fio",
    coupled_gate="i",
)


# PyTorch's own Y concatenates the directions in its last axis, [T, N, D*H]; here it is [T, N, D, H]. B is bias_ih, then
# bias_hh. PyTorch's GRU has linear_before_reset.
TORCH = Convention(
    "PyTorch",
    axes={"X": "TNI", "Y": "TNDH", "state": "DNH", "sequence_lens": "N"},
    gates={"LSTM": "ifco", "GRU": "rzh"},
    names={
        "X": "input",
        "sequence_lens": "lengths",
        "initial_h": "h_0",
        "initial_c": "c_0",
        "Y": "output",
        "Y_h": "h_n",
        "Y_c": "c_n",
    },
    length_dtypes=("int32", "int64"),
    peepholes="",
)
TORCH_BATCH_FIRST = replace(TORCH, name="PyTorch, batch_first", axes={**TORCH.axes, "X": "NTI", "Y": "NTDH"})
TORCH_CELL = replace(
    TORCH,
    name="PyTorch cell",
    axes={"X": "NI", "Y": "NH", "state": "NH", "sequence_lens": ""},
    has_directions=False,
)
# Keras has lists with the states and weights of the directions; here they are an axis. The two bias rows of a GRU with
# reset_after are concatenated.
KERAS = Convention(
    "Keras",
    axes={"X": "NTI", "Y": "NTDH", "state": "DNH", "sequence_lens": "N"},
    gates={"LSTM": "ifco"},
    bias=SUMMED,
    length_dtypes=("int32", "int64"),
    peepholes="",
    gates_last=True,
)
KERAS_RESET_AFTER = replace(KERAS, name="Keras, reset_after", bias=SEPARATE)


_CANONICAL_COUPLED_INPUT = replace(CANONICAL, coupled_gate="i")


def canonical_for(convention: Convention) -> Convention:
    """Return the canonical convention with gates coupled as in `convention`, so that any operator can be converted."""
    return CANONICAL if convention.coupled_gate == "f" else _CANONICAL_COUPLED_INPUT


def arguments_by_name(convention: Convention) -> dict[str, str]:
    """Return {name: canonical argument} for the names in ONNX, in OpenVINO and in the convention."""
    names = {_OPENVINO_NAMES.get(argument, argument): argument for argument in CALL_ARGUMENTS}
    names |= {argument: argument for argument in CALL_ARGUMENTS}
    return names | {convention.name_of(argument): argument for argument in CALL_ARGUMENTS}


def rearrange(array: AnyArray, axes: str, to: str) -> AnyArray:
    """Return a view with axes `to`: a missing axis gets length 1, and index 0 removes a superfluous axis."""
    present = "".join(letter for letter in to if letter in axes)
    index = tuple(0 if letter not in to else slice(None) for letter in axes)
    view = array[index].transpose([[a for a in axes if a in to].index(letter) for letter in present])
    return view[tuple(slice(None) if letter in axes else None for letter in to)]


def bias_blocks(op: RecurrentOp, convention: Convention) -> tuple[str, ...]:
    """Return the names of the blocks of hidden_size values in B, in order: "Wb_i", "Rb_i", or "b_i" for a sum."""
    order = convention.gate_order(op.cell)
    if convention.bias == SEPARATE:
        return tuple([f"{kind}_{gate}" for kind in ("Wb", "Rb") for gate in order])
    if op.linear_before_reset:
        return ("b_z", "b_r", "Wb_h", "Rb_h")
    return tuple([f"b_{gate}" for gate in order])


def _rows(convention: Convention, blocks: int) -> tuple[str, ...]:
    """Return the axes of `blocks` blocks of hidden_size rows."""
    return (("D",) if convention.has_directions else ()) + ("H" if blocks == 1 else f"{blocks}*H",)


def _matrix(cell: str, convention: Convention, columns: str) -> tuple[str, ...]:
    """Return the axes of W or R; `columns` is the axis of the vector that it multiplies."""
    *directions, rows = _rows(convention, len(CELLS[cell].gates))
    return (*directions, columns, rows) if convention.gates_last else (*directions, rows, columns)


def recurrence_axes(cell: str, convention: Convention) -> tuple[str, ...]:
    """Return the axes of R."""
    return _matrix(cell, convention, "H")


def weight_axes(op: RecurrentOp, convention: Convention) -> dict[str, tuple[str, ...]]:
    """Return the axes of each weight; an axis of several blocks is "4*H"."""
    axes = {
        "W": _matrix(op.cell, convention, "I"),
        "R": recurrence_axes(op.cell, convention),
        "B": _rows(convention, len(bias_blocks(op, convention))),
    }
    if op.has_cell_state and convention.peepholes:
        axes["P"] = _rows(convention, len(convention.peepholes))
    return axes


def operator_axes(op: RecurrentOp, convention: Convention) -> dict[str, tuple[str, ...]]:
    """Return the axes of every array, including weights, in the form of `weight_axes`."""
    others = (*CALL_ARGUMENTS, *OUTPUTS)
    return {**{name: tuple(convention.axes_of(name)) for name in others}, **weight_axes(op, convention)}


def axis_size(axis: str, sizes: Mapping[str, int]) -> int | None:
    """Return the size of an axis such as "4*H" from the sizes of letters, or None if it is unknown."""
    multiple, _, letter = axis.rpartition("*")
    return int(multiple or 1) * sizes[letter] if letter in sizes else None


def _reorder_gates(a: AnyArray, op: RecurrentOp, order: str, to: str) -> AnyArray:
    if order == to:
        return a
    blocks = a.reshape(op.num_directions, len(order), op.hidden_size, -1)
    return np.ascontiguousarray(blocks[:, [order.index(gate) for gate in to]]).reshape(a.shape)


def _swap_if_gates_last(name: str, a: AnyArray, convention: Convention) -> AnyArray:
    """Swap the last two axes of W and R if the convention has the gates last; return other weights unchanged."""
    return np.ascontiguousarray(a.swapaxes(1, 2)) if convention.gates_last and name in ("W", "R") else a


def split_bias(B: AnyArray, op: RecurrentOp, convention: Convention) -> dict[str, AnyArray]:
    """Return the blocks [D, H] of B [D, k*H] by name (see `bias_blocks`)."""
    H = op.hidden_size
    return {name: B[:, k * H : (k + 1) * H] for k, name in enumerate(bias_blocks(op, convention))}


def convert_bias(B: AnyArray, op: RecurrentOp, source: Convention, target: Convention) -> AnyArray:
    """Convert B [D, k*H] to another convention; a sum becomes (sum, 0) if the target separates Wb and Rb."""
    blocks = split_bias(B, op, source)
    zero = np.zeros_like(next(iter(blocks.values())))

    def block(name: str) -> AnyArray:
        kind, gate = name.split("_")
        if name in blocks:
            return blocks[name]
        if kind == "b":  # the target sums what the source separates
            with np.errstate(invalid="ignore", over="ignore"):  # inf - inf, and overflow to infinity
                return np.add(blocks[f"Wb_{gate}"], blocks[f"Rb_{gate}"])
        return blocks[f"b_{gate}"] if kind == "Wb" else zero

    return np.concatenate([block(name) for name in bias_blocks(op, target)], axis=1)


def couples_differently(op: RecurrentOp, source: Convention, target: Convention) -> bool:
    """Return whether input_forget derives gate i in one convention and gate f in the other."""
    return op.input_forget and source.coupled_gate != target.coupled_gate


def check_coupling(op: RecurrentOp, source: Convention, target: Convention, label: str | None = None) -> None:
    """Raise UnsupportedError if the target cannot express the operator's coupled gates.

    Only Sigmoid has 1 - f(x) = f(-x), so that negated weights compute the other gate.
    """
    for functions in op.activations if couples_differently(op, source, target) else ():
        if functions[0].name != "Sigmoid":
            meanings = " and ".join(f"{coupling(convention)} in {convention.name!r}" for convention in (source, target))
            raise UnsupportedError(
                f"{label or op.cell}: input_forget with activation {functions[0]} of the gates cannot be translated: "
                f"it means {meanings}, and only Sigmoid has 1 - f(x) = f(-x)"
            )


def coupling(convention: Convention) -> str:
    """Return the equation of input_forget."""
    return "f = 1 - i" if convention.coupled_gate == "f" else "i = 1 - f"


def _couple_other_gate(a: AnyArray, op: RecurrentOp, blocks: Sequence[str], unused: str) -> AnyArray:
    """Move the block of the computed gate (i or f) to the other gate, negated, and leave zeros."""
    computed = "i" if unused == "f" else "f"
    parts = a.reshape(op.num_directions, len(blocks), op.hidden_size, -1)
    result = parts.copy()
    for place, block in enumerate(blocks):
        if block.endswith(unused):
            result[:, place] = -parts[:, blocks.index(block[:-1] + computed)]
        elif block.endswith(computed):
            result[:, place] = 0
    return result.reshape(a.shape)


def _same_weights(a: Convention, b: Convention) -> bool:
    """Return whether two conventions arrange W, R, B and P in the same way; call arguments may differ."""
    aspects = ("gates", "bias", "peepholes", "has_directions", "coupled_gate", "gates_last")
    return a is b or all(getattr(a, aspect) == getattr(b, aspect) for aspect in aspects)


def convert_weights(
    op: RecurrentOp,
    weights: Mapping[str, AnyArray],
    source: Convention,
    target: Convention,
    label: str | None = None,
) -> dict[str, AnyArray]:
    """Convert the weights that are present to another convention.

    With input_forget and another `coupled_gate`, the unused weights become zero.
    """
    if "P" in weights and "P" not in weight_axes(op, target):
        raise UnsupportedError(
            f"{label or op.cell}: P (peepholes) cannot be expressed in the convention {target.name!r}"
        )
    check_coupling(op, source, target, label)
    result = dict(weights)
    if _same_weights(source, target):
        return result
    orders = {"W": (source.gate_order(op.cell), target.gate_order(op.cell)), "P": (source.peepholes, target.peepholes)}
    for name, weight in weights.items():
        array = weight if source.has_directions else weight[np.newaxis]
        blocks: Sequence[str]
        if name == "B":
            array, blocks = convert_bias(array, op, source, target), bias_blocks(op, target)
        else:
            order, blocks = orders["P" if name == "P" else "W"]
            array = _reorder_gates(_swap_if_gates_last(name, array, source), op, order, blocks)
        if couples_differently(op, source, target):
            array = _couple_other_gate(array, op, blocks, source.coupled_gate)
        array = _swap_if_gates_last(name, array, target)
        result[name] = array if target.has_directions else array[0]
    return result
