"""Proof that sequences can share a call of a model: results depend neither on other rows nor on padding.

table       effect of each ONNX operator along the axes of its inputs, as data
values      known properties of a value: its axes, and the effect of padding on it
node        a node with the known properties of its inputs
rules       rules for operators that compute
shapes      rules for operators that move elements or compute shapes
arithmetic  arithmetic of a graph on numbers of shapes
graph       the proof for a folded graph, from its inputs to its outputs
model       the proof for models of all formats
push        the proof for one push of a stream
"""

from pyrnnx.scoring.proof.graph import Proof
from pyrnnx.scoring.proof.model import proof_of_model
from pyrnnx.scoring.proof.push import proof_of_push

__all__ = ["Proof", "proof_of_model", "proof_of_push"]
