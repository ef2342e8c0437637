"""Faults of whole ONNX models: passes, programs and sessions."""

from __future__ import annotations

from mutation.fault import Fault

_ONNX = "tests/frontends/onnx"
_PASSES = f"{_ONNX}/passes"

FAULTS = (
    Fault(
        "a session ignores changed settings",
        "frontends/onnx/programs.py",
        "if self._current[0] is not settings:",
        "if self._current[0] is None:",
        f"{_ONNX}/test_programs.py {_ONNX}/test_fork.py",
    ),
    Fault(
        "calls that replace defaults run with those of the file",
        "frontends/onnx/programs.py",
        "is_plain = self._defaults.isdisjoint(inputs)",
        "is_plain = True",
        f"{_PASSES}/test_order.py",
    ),
    Fault(
        "an error of a layer becomes one of ONNX Runtime",
        "frontends/onnx/session.py",
        "    if own is not None:\n        return own\n",
        "",
        f"{_PASSES}/test_order.py {_ONNX}/test_model.py",
    ),
    Fault(
        "a model with float16 keeps its optimizations",
        "frontends/onnx/passes/recurrent.py",
        'return operators | {"float16"} if element in elements else operators',
        "return operators",
        f"{_ONNX}/test_session.py",
    ),
    Fault(
        "options of a user get arrays that they keep",
        "frontends/onnx/session.py",
        "if tensor.name in arrays] if is_own else []",
        "if tensor.name in arrays]",
        f"{_ONNX}/test_session.py",
    ),
    Fault(
        "a name of a body stays that of the graph",
        "frontends/onnx/passes/canonical.py",
        "if old not in own} | new",
        "if old not in own}",
        f"{_PASSES}/test_canonical.py",
    ),
    Fault(
        "names around a renamed body are renamed in it, too",
        "frontends/onnx/passes/canonical.py",
        "names = {old: name for old, name in names.items() if old not in own} | new",
        "names = {**new, **names}",
        f"{_PASSES}/test_canonical.py",
    ),
    Fault(
        "random numbers are constants",
        "frontends/onnx/passes/constants.py",
        "{*OPERATORS, *_random_operators(model)}",
        "{*OPERATORS}",
        f"{_PASSES}/test_constants.py",
    ),
    Fault(
        "values of inputs are constants",
        "frontends/onnx/passes/constants.py",
        "all(map(constants.owner, sources))",
        "any(map(constants.owner, sources))",
        f"{_PASSES}/test_constants.py {_PASSES}/test_order.py",
    ),
    Fault(
        "a weight that another node needs is dropped",
        "frontends/onnx/graph/walk.py",
        "            needed |= needed_names(node)\n            indices.append(index)",
        "            needed |= {*node.input[:1]}\n            indices.append(index)",
        f"{_PASSES}/test_order.py",
    ),
    Fault(
        "a value that a body needs is dropped",
        "frontends/onnx/graph/walk.py",
        "        names |= inside - local_names(graph)",
        "        names |= set()",
        f"{_PASSES} {_ONNX}/streams/test_model_stream.py",
    ),
    Fault(
        "a stream ignores weights that a push passes",
        "frontends/onnx/passes/operators.py",
        "if isinstance(site.layer, UnboundNode):",
        "if False:",
        f"{_ONNX}/streams/test_model_stream_errors.py",
    ),
    Fault(
        "nodes of old opsets keep their broadcasting",
        "frontends/onnx/passes/opsets.py",
        "    _set_aside(result)\n",
        "",
        f"{_PASSES}/test_opsets.py",
    ),
    Fault(
        "a convolution is multiplied with weights of another order",
        "frontends/onnx/passes/convolutions.py",
        ".transpose(2, 1, 0)",
        ".transpose(1, 2, 0)",
        f"{_PASSES}/test_convolutions.py",
    ),
    Fault(
        "a stream accepts a reverse layer",
        "frontends/onnx/passes/carried.py",
        "if layer.op.direction.reversed != (False,):",
        "if len(layer.op.direction.reversed) > 1:",
        f"{_ONNX}/streams/test_model_stream_errors.py",
    ),
    Fault(
        "a nonzero initial state becomes zero",
        "frontends/onnx/passes/carried.py",
        "            if value.any():\n                return False\n",
        "",
        f"{_ONNX}/streams/test_model_stream_errors.py",
    ),
)
