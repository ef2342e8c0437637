"""Settings that the programs of a model share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyrnnx._internal.dtypes import named_dtype
from pyrnnx.errors import UnsupportedError

from ..nodes import is_recurrent
from ..onnx_package import import_onnx
from . import session
from .recurrent import Call

if TYPE_CHECKING:
    from onnx import NodeProto


@dataclass(frozen=True)
class Settings:
    """Settings that the programs of a model share.

    Attributes
    ----------
    label : str
        How errors name the model.
    opsets : mapping
        Version by domain.
    layers : mapping
        Prepared layers by node name.
    runtime : str
        One of `config.RUNTIMES`.
    calls : mapping
        Runners of nodes of other domains, by node name.
    """

    label: str
    opsets: Mapping[str, int]
    layers: Mapping[str, Any]
    runtime: str
    calls: Mapping[str, Call] = field(default_factory=dict)

    def is_ours(self, node: NodeProto) -> bool:
        """Return whether a layer runs a node."""
        return is_recurrent(node) or (bool(node.domain) and node.name in self.calls)

    def element_type(self, node: NodeProto) -> int:
        """Return the element type of a node's results if a layer runs it; 0 if unknown."""
        if not self.is_ours(node):
            return 0
        layer = self.layers.get(node.name) if is_recurrent(node) else getattr(self.calls[node.name], "layer", None)
        dtype = getattr(layer, "dtype", None)
        return 0 if dtype is None else int(import_onnx().helper.np_dtype_to_tensor_dtype(named_dtype(str(dtype))))

    @property
    def why_evaluated(self) -> str:
        """Reason why onnx's ReferenceEvaluator runs the whole model; empty if ONNX Runtime does.

        Raises
        ------
        UnsupportedError
            The caller requires ONNX Runtime, which cannot run the model.
        """
        if self.runtime == "reference":
            return "asked for"
        why = ""
        if not session.is_installed():
            why = "ONNX Runtime is not installed (pip install onnxruntime)"
        elif self.opsets.get("", session.FIRST_OPSET) < session.FIRST_OPSET:
            why = f"ONNX Runtime begins with opset {session.FIRST_OPSET}"
        if why:
            self.check_allowed(why)
        return why

    def check_allowed(self, why: str) -> None:
        """Raise if the caller requires ONNX Runtime.

        Raises
        ------
        UnsupportedError
        """
        if self.runtime == "onnxruntime":
            raise UnsupportedError(f'{self.label}: runtime is "onnxruntime"; {why}')
