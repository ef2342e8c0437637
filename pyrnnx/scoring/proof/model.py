"""The proof for a model of any format, based on its ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyrnnx.errors import PyrnnxError, shortened
from pyrnnx.models.model import Model
from pyrnnx.scoring.proof.graph import Proof, follow
from pyrnnx.scoring.proof.values import Value

if TYPE_CHECKING:
    from onnx import ModelProto


def proof_of_model(model: Model, inputs: Mapping[str, Value], outputs: Sequence[str]) -> Proof:
    """Return what is proven about the independence of results from other rows and from padding.

    Parameters
    ----------
    model : Model
    inputs : mapping
        Known properties of the inputs of a call.
    outputs : sequence of str
    """
    try:
        proto, tensors = _folded(model, inputs, outputs)
    except PyrnnxError as error:
        reason = f"its graph cannot be analysed: {shortened(str(error))}"
        return Proof(reason, reason)
    return follow(proto, tensors, inputs, outputs)


def _folded(model: Model, inputs: Mapping[str, Value], outputs: Sequence[str]) -> tuple[ModelProto, Mapping[str, Any]]:
    """Return the folded graph with these outputs, and without default values of these inputs."""
    from pyrnnx.frontends import onnx as frontend

    proto: ModelProto
    if isinstance(model, frontend.Model):
        proto = model.proto
    else:
        from pyrnnx.frontends.openvino import to_onnx

        proto = to_onnx(model)
    replaced = {tensor.name for tensor in proto.graph.initializer} & inputs.keys()
    added = [name for name in outputs if name not in {info.name for info in proto.graph.output}]
    if isinstance(model, frontend.Model) and not replaced and not added:
        return model.folded()
    if replaced or added:
        copy = type(proto)()
        copy.CopyFrom(proto)
        proto = copy
        tensors = [tensor for tensor in proto.graph.initializer if tensor.name not in replaced]
        del proto.graph.initializer[:]
        proto.graph.initializer.extend(tensors)
        for name in added:
            proto.graph.output.add(name=name)
    return frontend.Model(proto, model.label, runtime=model.runtime).folded()  # type: ignore[attr-defined]
