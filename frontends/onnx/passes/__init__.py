"""Passes over an ONNX model: each returns or changes a ModelProto, and has a module and a test file of its own.

    canonical      canonical   values of bodies that hide others get names of their own; nodes are sorted
    find_layers    inline      functions that contain recurrent nodes become part of the graph
                   hidden      layers that the graph spells out become recurrent nodes
                   constants   W, R, B, P, ... that are computed from constants are computed once
                   recurrent   the layers of the recurrent nodes
    carried        carried     streams: the states of layers become inputs and outputs
    rewritten      operators   recurrent nodes become operators of pyrnnx
                   convolutions  short ones become products
                   opsets      models of opsets 1 to 6 become those of an opset that ONNX Runtime has

The results go into one ONNX Runtime session, for `load` and for `pyrnnx.onnxruntime.InferenceSession`.
"""

from .canonical import canonical
from .carried import Carried, carried
from .operators import Rewritten
from .order import FIRST_IR_WITH_DEFAULTS, find_layers, rewritten, without_layers
from .recurrent import DEFAULT_OPTIONS, LayerOptions, RecurrentModel, layer_options, recurrent_inputs

__all__ = [
    "DEFAULT_OPTIONS",
    "FIRST_IR_WITH_DEFAULTS",
    "Carried",
    "LayerOptions",
    "RecurrentModel",
    "Rewritten",
    "canonical",
    "carried",
    "find_layers",
    "layer_options",
    "recurrent_inputs",
    "rewritten",
    "without_layers",
]
