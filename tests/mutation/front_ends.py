"""Faults of the front-ends for ONNX, OpenVINO, PyTorch and Keras."""

from __future__ import annotations

from mutation.fault import faults

FAULTS = faults(r"""
parameters of activations are read from the end [frontends/onnx/operators/schemas.py]
    left[p].pop(0)
    left[p].pop()
    tests/frontends/onnx/operators/test_functions.py
an opset has the previous definition [frontends/onnx/operators/schemas.py]
    if first <= version
    if first < version or first == 1
    tests/frontends/onnx/operators/test_schemas.py
a copy of a node's layer loses its inputs [frontends/onnx/operators/layers.py]
    return partial(make, node_inputs=self.node_inputs, origin=self.origin), arguments
    return partial(make, origin=self.origin), arguments
    tests/frontends/onnx/operators/test_layers.py
scales of any dtype are accepted [frontends/onnx/operators/layers.py]
    if array.shape not in (per_tensor, per_channel) or array.dtype != dtype:
    if array.shape not in (per_tensor, per_channel):
    tests/frontends/onnx/operators/test_quantized.py
ports may have different precisions [frontends/openvino/layer_reader.py]
    if other.precision in allowed and other.precision != port.precision:
    if other.precision not in allowed and other.precision != port.precision:
    tests/frontends/openvino/test_layer_reader_errors.py
a clip of 0 clips [frontends/openvino/attributes.py]
    return None if value == 0 or math.isinf(value) else value
    return None if math.isinf(value) else value
    tests/frontends/openvino/test_layer_reader.py tests/frontends/openvino/test_functions.py
activations may differ by direction [frontends/openvino/attributes.py]
    if functions[count:] not in ((), functions[:count]):
    if len(functions) > 2 * count:
    tests/frontends/openvino/test_layer_reader_errors.py tests/frontends/openvino/test_functions.py
the last parameter of activations is not written [frontends/openvino/layer_writer.py]
    values[: used[-1] + 1]
    values[: used[-1]]
    tests/frontends/openvino/test_layer_writer.py
full lengths have the size of the wrong axis [frontends/openvino/layer_writer.py]
    size("seq_length", 1)
    size("seq_length", 0)
    tests/frontends/openvino/test_model_writer.py tests/frontends/openvino/test_round_trip.py
backward slices begin at their end [frontends/openvino/ir/port_maps.py]
    ((start, end) if stride > 0 else (end, start))
    (start, end)
    tests/frontends/openvino/translation/test_bodies.py tests/frontends/openvino/test_loops.py
two edges may end in one port [frontends/openvino/ir/net_graph.py]
    if index in sources[target]:
    if sources[target].get(index) == (source, output):
    tests/frontends/openvino/ir/test_net.py tests/frontends/openvino/test_model_errors.py
constants of 4 bits lose their last half byte [frontends/openvino/ir/layer.py]
    nbytes = -(-elements * element_type.bits // 8)
    nbytes = elements * element_type.bits // 8
    tests/frontends/openvino/ir
axes of Y keep the order of ONNX [frontends/openvino/translation/operations/recurrent.py]
    return ctx.transpose(name, [present.index(axis) for axis in to])
    return ctx.transpose(name, [present.index(axis) for axis in present])
    tests/frontends/openvino/translation/operations/test_recurrent.py
reset does not change the variables of a model [frontends/openvino/states.py]
                    self._stream.reset()\n
                    self._stream.restore(self._stream.state)\n
    tests/frontends/openvino/test_states.py
layers of PyTorch are sorted by direction first [frontends/torch/state_dict.py]
    for k in range(num_layers) for end in ends)
    for end in ends for k in range(num_layers))
    tests/frontends/torch
a GRU of Keras without bias has reset_after=False [frontends/keras/weights.py]
    reset_after = arrays[2].ndim == 2 if has_bias else True
    reset_after = arrays[2].ndim == 2 if has_bias else False
    tests/frontends/keras
""")
