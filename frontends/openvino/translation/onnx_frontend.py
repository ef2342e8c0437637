"""All that this front-end takes of the one for ONNX: the onnx package, the folding of constants, the running of models.

Importing the package `translation` imports this. So it is imported only where a model is called or exported, or a
constant computed: reading IRs and running their layers needs no onnx, which is optional.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...onnx.constants import constant_values, fold_constants
from ...onnx.model import Model
from ...onnx.onnx_package import import_onnx
from ...onnx.runtime.memory import ask
from ...onnx.runtime.recurrent import result_bytes
from ..layers import BoundLayer, IRLayer
from ..schemas import TYPES

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["DOMAIN", "Run", "constant_values", "fold_constants", "import_onnx", "runnable"]

Run = Callable[[dict[str, Any], tuple[str, ...]], dict[str, Any]]
DOMAIN = "org.openvinotoolkit"  # of operators that are OpenVINO's own


def runnable(model: ModelProto, label: str, layers: Mapping[str, BoundLayer | IRLayer]) -> Run:
    """What runs a model: checked inputs by their names, and names of values, to these values.

    Parameters
    ----------
    model : onnx.ModelProto
        In which recurrent operations are nodes of `DOMAIN`.
    label : str
        How errors name the model.
    layers : mapping
        What runs such nodes, by their names: see `operations.recurrent.as_it_is`.
    """
    return Model(model, label, operators=_recurrent_operators(layers))._run


def _recurrent_operators(layers: Mapping[str, BoundLayer | IRLayer]) -> list[type[Any]]:
    import_onnx()
    from onnx.reference.op_run import OpRun

    def run(self: Any, *arrays: Any) -> tuple[Any, ...]:
        node = self.onnx_node
        layer = layers[node.name]
        ask(node, result_bytes(layer.op, layer.convention, arrays[0]))
        results = layer.run(*arrays) if isinstance(layer, BoundLayer) else layer(*arrays)
        return results[-len(node.output) :]  # of a cell, `run` gives Y too

    return [type(name, (OpRun,), {"op_domain": DOMAIN, "_run": run}) for name in TYPES]
