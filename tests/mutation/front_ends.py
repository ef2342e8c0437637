"""Faults of the front-ends for ONNX, OpenVINO, PyTorch and Keras."""

from __future__ import annotations

from mutation.fault import Fault

_ONNX = "tests/frontends/onnx"
_IR = "tests/frontends/openvino"

FAULTS = (
    Fault(
        "parameters of activations are read from the end",
        "frontends/onnx/operators/attributes.py",
        "left[p].pop(0)",
        "left[p].pop()",
        f"{_ONNX}/operators/test_functions.py",
    ),
    Fault(
        "an unused value of activation_alpha is accepted",
        "frontends/onnx/operators/attributes.py",
        "        if values:\n",
        "        if len(values) > 1:\n",
        f"{_ONNX}/operators/test_functions_errors.py {_ONNX}/operators/test_functions.py",
    ),
    Fault(
        "an opset has the previous definition",
        "frontends/onnx/operators/schemas.py",
        "if first <= version",
        "if first < version or first == 1",
        f"{_ONNX}/operators/test_schemas.py",
    ),
    Fault(
        "RNN-14 has no layout",
        "frontends/onnx/operators/schemas.py",
        'Schema("RNN", 14, (*_RNN, _LAYOUT), _FLOATS)',
        'Schema("RNN", 14, _RNN, _FLOATS)',
        f"{_ONNX}/operators/test_schemas.py",
    ),
    Fault(
        "a copy of a node's layer loses its inputs",
        "frontends/onnx/operators/layers.py",
        "return partial(make, node_inputs=self.node_inputs, origin=self.origin), arguments",
        "return partial(make, origin=self.origin), arguments",
        f"{_ONNX}/operators/test_layers.py",
    ),
    Fault(
        "scales of any dtype are accepted",
        "frontends/onnx/operators/quantized.py",
        "if array.shape not in (per_tensor, per_channel) or array.dtype != dtype:",
        "if array.shape not in (per_tensor, per_channel):",
        f"{_ONNX}/operators/test_quantized.py",
    ),
    Fault(
        "ports may have different precisions",
        "frontends/openvino/layer_reader.py",
        "if other.precision in allowed and other.precision != port.precision:",
        "if other.precision not in allowed and other.precision != port.precision:",
        f"{_IR}/test_layer_reader_errors.py",
    ),
    Fault(
        "a clip of 0 clips",
        "frontends/openvino/attributes.py",
        "return None if value == 0 or math.isinf(value) else value",
        "return None if math.isinf(value) else value",
        f"{_IR}/test_layer_reader.py {_IR}/test_functions.py",
    ),
    Fault(
        "activations may differ by direction",
        "frontends/openvino/attributes.py",
        "if functions[count:] not in ((), functions[:count]):",
        "if len(functions) > 2 * count:",
        f"{_IR}/test_layer_reader_errors.py {_IR}/test_functions.py",
    ),
    Fault(
        "the last parameter of activations is not written",
        "frontends/openvino/layer_writer.py",
        "values[: used[-1] + 1]",
        "values[: used[-1]]",
        f"{_IR}/test_layer_writer.py",
    ),
    Fault(
        "full lengths have the size of the wrong axis",
        "frontends/openvino/layer_writer.py",
        'size("seq_length", 1)',
        'size("seq_length", 0)',
        f"{_IR}/test_model_writer.py {_IR}/test_round_trip.py",
    ),
    Fault(
        "backward slices begin at their end",
        "frontends/openvino/ir/port_maps.py",
        "((start, end) if stride > 0 else (end, start))",
        "(start, end)",
        f"{_IR}/translation/test_bodies.py {_IR}/test_loops.py",
    ),
    Fault(
        "two edges may end in one port",
        "frontends/openvino/ir/net_graph.py",
        "if index in sources[target]:",
        "if sources[target].get(index) == (source, output):",
        f"{_IR}/ir/test_net.py {_IR}/test_model_errors.py",
    ),
    Fault(
        "constants of 4 bits lose their last half byte",
        "frontends/openvino/ir/layer.py",
        "nbytes = -(-elements * element_type.bits // 8)",
        "nbytes = elements * element_type.bits // 8",
        f"{_IR}/ir",
    ),
    Fault(
        "equal lengths count as full lengths",
        "frontends/openvino/translation/operations/recurrent.py",
        "(array == shape[1]).all()",
        "(array == array[:1]).all()",
        f"{_IR}/translation/operations/test_recurrent.py",
    ),
    Fault(
        "axes of Y keep the order of ONNX",
        "frontends/openvino/translation/operations/recurrent.py",
        "return ctx.transpose(name, [present.index(axis) for axis in to])",
        "return ctx.transpose(name, [present.index(axis) for axis in present])",
        f"{_IR}/translation/operations/test_recurrent.py",
    ),
    Fault(
        "the initial value of a variable may have another dtype",
        "frontends/openvino/translation/bodies.py",
        "if expected not in (None, ctx.dtype(0)):",
        "if expected is not None and ctx.dtype(0) is None:",
        f"{_IR}/ir/test_variables.py",
    ),
    Fault(
        "deleting a variable deletes others",
        "frontends/openvino/states.py",
        "for name, value in values.items() if name != key})",
        "for name, value in values.items() if name > key})",
        f"{_IR}/test_states.py",
    ),
    Fault(
        "reset does not change the variables of a model",
        "frontends/openvino/states.py",
        "                self._stream.reset()\n",
        "                self._stream.restore(self._stream.state)\n",
        f"{_IR}/test_states.py",
    ),
    Fault(
        "layers of PyTorch are sorted by direction first",
        "frontends/torch/state_dict.py",
        "for k in range(num_layers) for end in ends)",
        "for end in ends for k in range(num_layers))",
        "tests/frontends/torch",
    ),
    Fault(
        "a GRU of Keras without bias has reset_after=False",
        "frontends/keras/weights.py",
        "reset_after = arrays[2].ndim == 2 if has_bias else True",
        "reset_after = arrays[2].ndim == 2 if has_bias else False",
        "tests/frontends/keras",
    ),
    Fault(
        "reset_after does not set linear_before_reset",
        "frontends/keras/weights.py",
        "linear_before_reset=cells[0].reset_after,",
        "linear_before_reset=False,",
        "tests/frontends/keras",
    ),
)
