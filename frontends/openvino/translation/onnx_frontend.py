"""Imports from the ONNX front-end: the onnx package, sessions, models.

Only the packages `translation` and `writing` import this module, and they are imported only to call, export or write a
model or to compute a constant. Reading IRs and running their layers needs no onnx, which is optional.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...onnx.graph.constants import array_of, named, shape_of
from ...onnx.graph.inference import infer_shapes
from ...onnx.graph.places import protos
from ...onnx.graph.value_info import tensor_info
from ...onnx.graph.walk import all_nodes, local_names, needed_names, node_label, subgraphs
from ...onnx.model import Model, read_model
from ...onnx.onnx_package import import_onnx
from ...onnx.operators.nodes import is_recurrent
from ...onnx.operators.schemas import OPERATORS
from ...onnx.passes.recurrent import RecurrentModel
from ...onnx.session import RANDOM, NotRunnable, constant_values, onnxruntime
from ...onnx.writing.write import write_model
from ..layers import BoundLayer, IRLayer

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = [
    # defined here
    "DOMAIN",
    "runnable",
    # of the ONNX front-end
    "OPERATORS",
    "RANDOM",
    "Model",
    "NotRunnable",
    "RecurrentModel",
    "all_nodes",
    "array_of",
    "constant_values",
    "import_onnx",
    "infer_shapes",
    "is_recurrent",
    "local_names",
    "named",
    "needed_names",
    "node_label",
    "onnxruntime",
    "protos",
    "read_model",
    "shape_of",
    "subgraphs",
    "tensor_info",
    "write_model",
]

DOMAIN = "org.openvinotoolkit"  # of OpenVINO's own operators


def runnable(model: ModelProto, label: str, layers: Mapping[str, BoundLayer | IRLayer], session_options: Any) -> Model:
    """Return a model ready to run.

    Parameters
    ----------
    model : onnx.ModelProto
        The model; its recurrent operations are nodes of `DOMAIN`.
    label : str
        Name of the model in errors.
    layers : mapping
        Layers that run these nodes, by the nodes' names: see `operations.recurrent.as_operation`.
    session_options : onnxruntime.SessionOptions, optional
        As for `read_model`.
    """
    return Model(model, label, session_options=session_options, others=layers)
