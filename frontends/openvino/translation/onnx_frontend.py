"""Imports from the ONNX front-end: the onnx package, constant folding, models.

Only the packages `translation` and `writing` import this module, and they are imported only to call, export or write a
model or to compute a constant. Reading IRs and running their layers needs no onnx, which is optional.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...onnx.constants import constant_values, fold_constants
from ...onnx.graph.constants import array_of
from ...onnx.graph.fold import fold
from ...onnx.graph.inference import infer_shapes
from ...onnx.graph.rebuild import rebuild
from ...onnx.graph.walk import all_nodes, local_names, needed_names, node_label, subgraphs
from ...onnx.model import Model, read_model
from ...onnx.model_writer import write_model
from ...onnx.onnx_package import import_onnx
from ...onnx.runtime.evaluator import evaluate_node
from ...onnx.runtime.memory import ask
from ...onnx.runtime.recurrent import LayerCall, result_bytes
from ...onnx.runtime.types import Tensors
from ...onnx.schemas import OPERATORS
from ...onnx.value_info import tensor_info
from ..layers import BoundLayer, IRLayer

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

__all__ = [
    # defined here
    "DOMAIN",
    "folded_graph",
    "runnable",
    # of the ONNX front-end
    "OPERATORS",
    "Model",
    "Tensors",
    "all_nodes",
    "array_of",
    "constant_values",
    "fold_constants",
    "import_onnx",
    "infer_shapes",
    "local_names",
    "needed_names",
    "node_label",
    "read_model",
    "subgraphs",
    "tensor_info",
    "write_model",
]

DOMAIN = "org.openvinotoolkit"  # of OpenVINO's own operators


def runnable(model: ModelProto, label: str, layers: Mapping[str, BoundLayer | IRLayer], runtime: str | None) -> Model:
    """Return a model ready to run.

    Parameters
    ----------
    model : onnx.ModelProto
        The model; its recurrent operations are nodes of `DOMAIN`.
    label : str
        Name of the model in errors.
    layers : mapping
        Layers that run these nodes, by the nodes' names: see `operations.recurrent.as_operation`.
    runtime : str, optional
        Runtime of the other nodes, as for `read_model`.
    """
    return Model(model, label, runtime=runtime, calls={name: _call(layer) for name, layer in layers.items()})


def folded_graph(graph: GraphProto, opsets: Mapping[str, int], label: str, largest: int) -> GraphProto:
    """Return a new graph with its constants folded; `largest` as for `fold_constants`."""
    return rebuild(fold(graph, opsets, evaluate_node, label, largest=largest))


class _UnboundCall(LayerCall):
    """A call of a layer with computed weights, whose inputs are those of the layer in port order."""

    def __call__(self, node: NodeProto, arrays: Sequence[Any]) -> Sequence[Any]:
        ask(self.layer.label, result_bytes(self.layer.op, self.layer.convention, arrays[0]))
        results: Sequence[Any] = self.layer(*arrays)
        return results


def _call(layer: BoundLayer | IRLayer) -> LayerCall:
    return LayerCall(layer) if isinstance(layer, BoundLayer) else _UnboundCall(layer, layer.arguments)
