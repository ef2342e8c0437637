"""Faults of operators, checks, conventions, streams and stacks."""

from __future__ import annotations

from mutation.fault import faults

FAULTS = faults(r"""
a length equal to seq_length is refused [pyrnnx/operator/check.py]
    outside |= array > sizes["T"]
    outside |= array >= sizes["T"]
    tests/frontends/onnx/operators/test_functions_errors.py tests/layers/test_calls.py
a layer does not copy its lengths [pyrnnx/operator/check.py]
    array = copied(label, name, original, lambda: np.array(original))
    array = copied(label, name, original, lambda: original)
    tests/layers/test_constants.py tests/layers/test_races.py tests/layers/test_calls.py
a GRU of OpenVINO requires a cell state [pyrnnx/operator/check.py]
    and argument in convention.required and (op.has_cell_state or argument != "initial_c")
    and argument in convention.required
    tests/frontends/openvino/test_functions.py tests/frontends/openvino/test_layers.py
an argument may have two names [pyrnnx/operator/check.py]
            if argument in values:\n
            if argument in values and name in values:\n
    tests/layers/test_calls.py tests/frontends/onnx/operators/test_functions_errors.py
alpha and beta are swapped [pyrnnx/layers/prepare.py]
    activation.alpha or 0.0, activation.beta or 0.0
    activation.beta or 0.0, activation.alpha or 0.0
    tests/frontends/onnx/operators/test_functions.py
input_forget couples f in every convention [pyrnnx/layers/prepare.py]
    coupled_gate=convention.coupled_gate if op.input_forget else None
    coupled_gate="f" if op.input_forget else None
    tests/frontends/openvino/test_functions.py tests/frontends/openvino/test_layers.py
PyTorch's GRU has the wrong gate order [pyrnnx/operator/conventions.py]
    "GRU": "rzh"
    "GRU": "zrh"
    tests/operator/test_conventions.py tests/frontends/torch
LSTMSequence-1 has the wrong peephole order [pyrnnx/operator/conventions.py]
    name="OpenVINO sequence, version 1", peepholes="fio"
    name="OpenVINO sequence, version 1", peepholes="iof"
    tests/operator/test_conventions.py tests/frontends/openvino/test_functions.py
Wb and Rb both get the whole bias [pyrnnx/operator/conventions.py]
    return blocks[f"b_{gate}"] if kind == "Wb" else zero
    return blocks[f"b_{gate}"]
    tests/operator/test_conventions.py
a copy of a layer loses its constants [pyrnnx/layers/layer.py]
                constants=dict(self.constants),\n
    (nothing)
    tests/layers/test_constants.py
a row without steps loses its state [pyrnnx/layers/stream.py]
    resting = lengths == 0
    resting = lengths < 0
    tests/layers/test_stream.py
a stream returns its states without a copy [pyrnnx/layers/stream.py]
    return tuple(array.copy() for array in (self._h, self._c) if array is not None)
    return tuple(array for array in (self._h, self._c) if array is not None)
    tests/layers/test_stream.py
a stack's stream does not update its states [pyrnnx/stacks/stream.py]
    self._states, self._spare = spare, states
    self._spare = spare
    tests/stacks/test_stream.py
states of ragged sequences are in the wrong order [pyrnnx/stacks/stack.py]
    whole[:, rows] = part
    whole[:, : len(rows)] = part
    tests/stacks/test_ragged.py
a bucket runs without lengths [pyrnnx/stacks/stack.py]
    None if lengths[-1] == T else lengths
    None if lengths[0] == T else lengths
    tests/stacks/test_ragged.py
all layers get the states of the first layer [pyrnnx/stacks/states.py]
    return [whole[end - D : end] if D else None
    return [whole[:D] if D else None
    tests/stacks/test_stack.py
the states of a model's stream share memory with results [pyrnnx/models/stream.py]
    values = {name: results[output].copy() for output, name in self._copied}
    values = {name: results[output] for output, name in self._copied}
    tests/models/test_stream.py tests/frontends/onnx/streams/test_model_stream.py
""")
