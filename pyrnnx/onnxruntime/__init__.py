"""ONNX Runtime with the recurrent layers of pyrnnx inside: `from pyrnnx.onnxruntime import InferenceSession`.

A model stays one session of ONNX Runtime; its RNN, GRU, LSTM and DynamicQuantizeLSTM nodes, in bodies of If, Loop and
Scan, too, run on the kernels of pyrnnx.
"""

from pyrnnx._internal.extras import needs

try:
    from onnxruntime import SessionOptions
except ModuleNotFoundError:
    raise ModuleNotFoundError(needs("pyrnnx.onnxruntime", "onnxruntime", "onnx"), name="onnxruntime") from None

from .session import InferenceSession, library, rewrite

__all__ = ["InferenceSession", "SessionOptions", "library", "rewrite"]
