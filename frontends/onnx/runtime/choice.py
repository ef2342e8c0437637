"""Who runs a node: ONNX Runtime, unless there is a reason against it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyrnnx import config
from pyrnnx.errors import UnsupportedError

from ..graph.walk import all_nodes, needed_names, node_label
from ..nodes import is_recurrent
from ..onnx_package import import_onnx
from . import session
from .excluded import SCANS, reason_against, scans_inner_axes
from .recurrent import Call
from .segments import Runner, holds_recurrent
from .session import NotRunnable, segment_model, session_of
from .steps import CONTROL
from .types import Tensors, Types, element_types, without_shape

_FIRST_SCAN = 9  # Scan-8 has an axis of rows
# Types that NumPy has by ml_dtypes alone, whose arrays ONNX Runtime does not take; and strings, which it keeps in
# memory that nothing bounds.
_FOREIGN = ("STRING", "BFLOAT16", "FLOAT8", "FLOAT4", "FLOAT6", "UINT4", "INT4", "UINT2", "INT2")


@dataclass(frozen=True)
class Settings:
    """What the plan of a model and those of its bodies share.

    Attributes
    ----------
    label : str
        How errors name the model.
    opsets : mapping
        Version by domain.
    layers : mapping
        Prepared layers by the names of nodes.
    runtime : str
        One of `config.RUNTIMES`.
    calls : mapping
        What runs nodes of domains that no runtime knows, by the names of the nodes.
    """

    label: str
    opsets: Mapping[str, int]
    layers: Mapping[str, Any]
    runtime: str
    calls: Mapping[str, Call] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        return Settings, (self.label, dict(self.opsets), dict(self.layers), self.runtime, dict(self.calls))

    def is_ours(self, node: Any) -> bool:
        """Whether a node is run by a layer."""
        return is_recurrent(node) or (bool(node.domain) and node.name in self.calls)

    def element_type(self, node: Any) -> int:
        """That of the results of a node that is run by a layer; 0 where it is not known."""
        layer = self.layers.get(node.name) if is_recurrent(node) else None
        dtype = getattr(layer, "dtype", None)
        return 0 if dtype is None else int(import_onnx().helper.np_dtype_to_tensor_dtype(dtype))

    @property
    def fallback(self) -> str:
        """Why onnx's reference evaluator runs all that is not recurrent; empty where it does not.

        Raises
        ------
        UnsupportedError
            ONNX Runtime was asked for, and cannot run the model.
        """
        if self.runtime == "reference":
            return "asked for"
        why = ""
        if not session.is_installed():
            why = "ONNX Runtime is not installed (pip install onnxruntime)"
        elif self.opsets.get("", session.FIRST_OPSET) < session.FIRST_OPSET:
            why = f"ONNX Runtime begins with opset {session.FIRST_OPSET}"
        if why and self.runtime == "onnxruntime":
            raise UnsupportedError(f'{self.label}: runtime is "onnxruntime"; {why}')
        return why


class Choice:
    """The runners of the nodes of a graph, and why the reference evaluator has some of them.

    Parameters
    ----------
    settings : Settings
    types : mapping
        Of the values that the nodes see.
    tensors : mapping
        The constants that they see.
    """

    def __init__(self, settings: Settings, types: Types, tensors: Tensors) -> None:
        self._settings, self._types, self._tensors = settings, types, tensors
        self._fallback = settings.fallback
        self._why: dict[int, str] = {}
        self._element_names = {number: name for name, number in import_onnx().TensorProto.DataType.items()}

    def runner(self, node: Any) -> Runner:
        """Who runs a node.

        Raises
        ------
        UnsupportedError
            ONNX Runtime was asked for, and does not run it.
        """
        holds = holds_recurrent(node, self._is_ours)
        if holds and self._is_step(node):
            if scans_inner_axes(node):
                self._why.setdefault(id(node), SCANS)
            return Runner.PYRNNX
        if self._fallback:
            return Runner.REFERENCE
        if holds:
            self._leave(node, "it holds recurrent operators")
        elif why := next(filter(None, (reason_against(one, self._tensors) for one in all_nodes([node]))), ""):
            self._leave(node, why)
        elif self._is_newer(node):
            self._leave(node, f"ONNX Runtime has the operators up to opset {session.last_opset()}")
        else:
            for name in (*node.input, *node.output):
                for element in element_types(self._types[name]) if name in self._types else ():
                    kind = self._element_names.get(element, f"type {element}")
                    if element not in self._element_names or kind.startswith(_FOREIGN):
                        self._leave(node, f"its values are {kind.lower()}")
        return Runner.REFERENCE if id(node) in self._why else Runner.ONNXRUNTIME

    def _is_ours(self, node: Any) -> bool:
        """Whether a node is a step of ours, and control flow around it is too."""
        return self._settings.is_ours(node) or (not self._fallback and scans_inner_axes(node))

    def _is_newer(self, node: Any) -> bool:
        """Whether the operator, or one in a body of the node, changed after the last opset that ONNX Runtime has."""
        version = self._settings.opsets.get("", 0)
        last = session.runnable_opset(version)
        if version == last:
            return False
        schema = import_onnx().defs.get_schema
        operators = {one.op_type for one in all_nodes([node]) if not one.domain}
        try:
            return any(schema(operator, version).since_version > last for operator in operators)
        except Exception:  # no such operator: whoever runs it says so
            return True

    def _is_step(self, node: Any) -> bool:
        """Whether a node that is, or holds, a recurrent one is a step of ours."""
        if self._settings.is_ours(node):
            return True
        old = node.op_type == "Scan" and self._settings.opsets.get("", 0) < _FIRST_SCAN
        return node.op_type in CONTROL and not node.domain and not old

    def _leave(self, node: Any, why: str) -> None:
        """Let the reference evaluator run a node."""
        self._why.setdefault(id(node), why)
        if self._settings.runtime == "onnxruntime":
            raise UnsupportedError(
                f'{self._settings.label}: runtime is "onnxruntime"; {node_label(node)} cannot be run by it: {why}'
            )

    def exclude(self, nodes: Sequence[Any], why: str) -> None:
        """Leave to the reference evaluator what ONNX Runtime does not run of a segment: all if no node is found."""
        if len(nodes) == 1:
            self._leave(nodes[0], why)
            return
        tried: dict[bytes, str] = {}
        for node in nodes:
            signature = _signature(node, self._types)
            if signature not in tried:
                tried[signature] = self._tried(node)
            if tried[signature]:
                self._leave(node, tried[signature])
        if not any(tried.values()):
            for node in nodes:
                self._leave(node, why)

    def _tried(self, node: Any) -> str:
        """Why ONNX Runtime does not run a node; empty where it does, or where the types of inputs are not known."""
        names = needed_names(node)
        if any(name not in self._types for name in names):
            return ""
        constants = {name: self._tensors[name] for name in names if name in self._tensors}
        types = {name: without_shape(self._types[name]) for name in names if name not in self._tensors}
        outputs = [name for name in node.output if name]
        try:
            model = segment_model([node], types, types, outputs, {}, self._settings.opsets)
            session_of(self._settings.label, model, constants, 1, config.get_memory_limit())
        except NotRunnable as error:
            return str(error)
        return ""

    def why(self, nodes: Iterable[Any]) -> str:
        """Why the reference evaluator runs these nodes; empty where it does not."""
        found = dict.fromkeys(self._why[id(node)] for node in nodes if id(node) in self._why)
        return "; ".join(found)


def _signature(node: Any, types: Types) -> bytes:
    """Equal for nodes that a session runs alike: operator, attributes, element types."""
    copy = type(node)()
    copy.CopyFrom(node)
    for cleared in ("name", "doc_string", "input", "output"):
        copy.ClearField(cleared)
    elements = [sorted(element_types(types[name])) for name in node.input if name in types]
    return bytes(copy.SerializeToString()) + repr((elements, len(node.input), len(node.output))).encode()
