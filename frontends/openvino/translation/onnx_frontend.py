"""All that this front-end takes of the one for ONNX: the onnx package, the folding of constants, models read and run.

The packages `translation` and `writing` import this. So they are imported only where a model is called, exported or
written, or a constant computed: reading IRs and running their layers needs no onnx, which is optional.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...onnx.constants import constant_values, fold_constants
from ...onnx.graph.constants import array_of
from ...onnx.graph.walk import all_nodes, node_label
from ...onnx.model import Model, read_model
from ...onnx.model_writer import write_model
from ...onnx.onnx_package import import_onnx
from ...onnx.runtime.memory import ask
from ...onnx.runtime.recurrent import LayerCall, result_bytes
from ...onnx.schemas import OPERATORS
from ...onnx.value_info import tensor_info
from ..layers import BoundLayer, IRLayer

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = [
    # what it makes of ONNX's
    "DOMAIN",
    "runnable",
    # ONNX's own
    "OPERATORS",
    "Model",
    "all_nodes",
    "array_of",
    "constant_values",
    "fold_constants",
    "import_onnx",
    "node_label",
    "read_model",
    "tensor_info",
    "write_model",
]

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
