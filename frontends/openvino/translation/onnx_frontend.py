"""All that this front-end takes of the one for ONNX: the onnx package, the folding of constants, the running of models.

Importing the package `translation` imports this. So it is imported only where a model is called or exported, or a
constant computed: reading IRs and running their layers needs no onnx, which is optional.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...onnx.constants import constant_values, fold_constants
from ...onnx.model import Model
from ...onnx.onnx_package import import_onnx
from ...onnx.runtime.memory import ask
from ...onnx.runtime.recurrent import LayerCall, result_bytes
from ..layers import BoundLayer, IRLayer

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["DOMAIN", "Model", "constant_values", "fold_constants", "import_onnx", "runnable"]

DOMAIN = "org.openvinotoolkit"  # of operators that are OpenVINO's own


def runnable(model: ModelProto, label: str, layers: Mapping[str, BoundLayer | IRLayer], runtime: str | None) -> Model:
    """A model ready to run.

    Parameters
    ----------
    model : onnx.ModelProto
        In which recurrent operations are nodes of `DOMAIN`.
    label : str
        How errors name the model.
    layers : mapping
        What runs such nodes, by their names: see `operations.recurrent.as_it_is`.
    runtime : str, optional
        As of `read_model`.
    """
    return Model(model, label, runtime=runtime, calls={name: _call(layer) for name, layer in layers.items()})


class _UnboundCall(LayerCall):
    """One whose weights are computed at run time: its inputs are those of the layer in port order."""

    def __call__(self, node: Any, arrays: Sequence[Any]) -> Sequence[Any]:
        ask(self.layer.label, result_bytes(self.layer.op, self.layer.convention, arrays[0]))
        results: Sequence[Any] = self.layer(*arrays)
        return results


def _call(layer: BoundLayer | IRLayer) -> LayerCall:
    return LayerCall(layer) if isinstance(layer, BoundLayer) else _UnboundCall(layer, layer.arguments)
