"""Faults of whole ONNX models: passes, programs and sessions."""

from __future__ import annotations

from mutation.fault import faults

FAULTS = faults(r"""
a session ignores changed settings [frontends/onnx/session.py]
        if before is not settings:\n            more
        if before is None:\n            more
    tests/frontends/onnx/test_programs.py
calls that replace defaults run with those of the file [frontends/onnx/session.py]
    is_plain = self._defaults.isdisjoint(inputs)
    is_plain = True
    tests/frontends/onnx/passes/test_order.py
an error of a layer becomes one of ONNX Runtime [frontends/onnx/session.py]
        if own is not None:\n        return own\n
    (nothing)
    tests/frontends/onnx/passes/test_order.py tests/frontends/onnx/test_model.py
a model with float16 keeps its optimizations [frontends/onnx/passes/recurrent.py]
    return operators | {"float16"} if element in elements else operators
    return operators
    tests/frontends/onnx/test_session.py
options of a user get arrays that they keep [frontends/onnx/session.py]
    if tensor.name in arrays] if is_own else []
    if tensor.name in arrays]
    tests/frontends/onnx/test_session.py
a name of a body stays that of the graph [frontends/onnx/passes/canonical.py]
    if old not in own} | new
    if old not in own}
    tests/frontends/onnx/passes/test_canonical.py
random numbers are constants [frontends/onnx/passes/constants.py]
    {*OPERATORS, *_random_operators(model)}
    {*OPERATORS}
    tests/frontends/onnx/passes/test_constants.py
values of inputs are constants [frontends/onnx/passes/constants.py]
    all(map(constants.owner, sources))
    any(map(constants.owner, sources))
    tests/frontends/onnx/passes/test_constants.py tests/frontends/onnx/passes/test_order.py
a weight that another node needs is dropped [frontends/onnx/graph/walk.py]
                needed |= needed_names(node)\n            indices.append(index)
                needed |= {*node.input[:1]}\n            indices.append(index)
    tests/frontends/onnx/passes/test_order.py
a value that a body needs is dropped [frontends/onnx/graph/walk.py]
            names |= inside - local_names(graph)
            names |= set()
    tests/frontends/onnx/passes tests/frontends/onnx/streams/test_model_stream.py
a stream ignores weights that a push passes [frontends/onnx/passes/operators.py]
    if isinstance(site.layer, UnboundNode):
    if False:
    tests/frontends/onnx/streams/test_model_stream_errors.py
nodes of old opsets keep their broadcasting [frontends/onnx/passes/opsets.py]
        _set_aside(result)\n
    (nothing)
    tests/frontends/onnx/passes/test_opsets.py
a convolution is multiplied with weights of another order [frontends/onnx/passes/convolutions.py]
    .transpose(2, 1, 0)
    .transpose(1, 2, 0)
    tests/frontends/onnx/passes/test_convolutions.py
a stream accepts a reverse layer [frontends/onnx/passes/carried.py]
    if layer.op.direction.reversed != (False,):
    if len(layer.op.direction.reversed) > 1:
    tests/frontends/onnx/streams/test_model_stream_errors.py
""")
