"""Faults of whole ONNX models: graph passes and runtime."""

from __future__ import annotations

from mutation.fault import Fault

_RUNTIME = "tests/frontends/onnx/runtime"
_GRAPH = "tests/frontends/onnx/graph"

FAULTS = (
    Fault(
        "empty arrays reach ONNX Runtime",
        "frontends/onnx/runtime/program.py",
        'if getattr(feeds[name], "size", 1) == 0:',
        'if getattr(feeds[name], "size", 1) < 0:',
        f"{_RUNTIME}/test_program.py",
    ),
    Fault(
        "a session ignores changed settings",
        "frontends/onnx/runtime/program.py",
        "return ready[1] if ready is not None and ready[0] == config.settings() else self._current(feeds)",
        "return ready[1] if ready is not None else self._current(feeds)",
        f"{_RUNTIME}/test_program.py {_RUNTIME}/test_repeated_calls.py",
    ),
    Fault(
        "a default replaces an input",
        "frontends/onnx/runtime/program.py",
        "{**self._defaults, **inputs} if self._defaults else inputs",
        "{**inputs, **self._defaults} if self._defaults else inputs",
        f"{_RUNTIME}/test_program.py",
    ),
    Fault(
        "an error of a custom operator becomes one of ONNX Runtime",
        "frontends/onnx/runtime/program.py",
        "if isinstance(own, PyrnnxError) or (own is not None and not isinstance(own, Exception)):",
        "if own is not None and not isinstance(own, Exception):",
        f"{_RUNTIME}/test_program.py {_RUNTIME}/test_program_functions.py",
    ),
    Fault(
        "results share memory with inputs",
        "frontends/onnx/runtime/program.py",
        "return own_results({name: values[name] for name in self.wanted}, inputs.values())",
        "return {name: values[name] for name in self.wanted}",
        f"{_RUNTIME}/test_results.py {_RUNTIME}/test_program.py {_RUNTIME}/test_repeated_calls.py",
    ),
    Fault(
        "a body reads a constant that its own name shadows",
        "frontends/onnx/runtime/replace.py",
        "inside = {name: tensor for name, tensor in tensors().items() if name not in own}",
        "inside = dict(tensors())",
        f"{_RUNTIME}/test_replace.py {_RUNTIME}/test_control.py {_RUNTIME}/test_excluded.py",
    ),
    Fault(
        "kinds of nodes ignore the types of inputs",
        "frontends/onnx/runtime/replace.py",
        "elements = [sorted(element_types(types[name])) for name in node.input if name in types]",
        "elements: list[Any] = []",
        f"{_RUNTIME}/test_replace.py {_RUNTIME}/test_plan.py {_RUNTIME}/test_excluded.py",
    ),
    Fault(
        "weights without axes reach ONNX Runtime",
        "frontends/onnx/runtime/excluded.py",
        "return not weights or len(shape_of(weights[0])) < 3",
        "return not weights",
        f"{_RUNTIME}/test_excluded.py",
    ),
    Fault(
        "a model with float16 constants keeps its optimizations",
        "frontends/onnx/runtime/types.py",
        "        elements.update(tensor.data_type for tensor in inner.initializer)\n",
        "",
        f"{_RUNTIME}/test_optimizers.py {_RUNTIME}/test_float16.py",
    ),
    Fault(
        "the memory limit applies to each operator alone",
        "frontends/onnx/runtime/memory.py",
        "        if self.used + expected > self.limit:\n",
        "        if expected > self.limit:\n",
        f"{_RUNTIME}/test_memory.py",
    ),
    Fault(
        "a nested call ends the count of the outer call",
        "frontends/onnx/runtime/memory.py",
        "_current.meter = self._before",
        "_current.meter = None",
        f"{_RUNTIME}/test_memory.py",
    ),
    Fault(
        "folding has no budget",
        "frontends/onnx/graph/fold.py",
        "self._bytes_left -= sum(array.nbytes for array in results.values())",
        "self._bytes_left -= 0",
        f"{_GRAPH}/test_fold.py",
    ),
    Fault(
        "random numbers are constants",
        "frontends/onnx/graph/fold.py",
        '"Bernoulli", "Dropout", "Multinomial", "RandomNormal"',
        '"Dropout", "Multinomial", "RandomNormal"',
        f"{_GRAPH}/test_fold.py",
    ),
    Fault(
        "a value used only by a body is removed",
        "frontends/onnx/graph/rebuild.py",
        "needed |= body.needed - body.folded.graph.local",
        "needed |= body.needed & body.folded.graph.local",
        f"{_GRAPH}/test_rebuild.py {_RUNTIME}/test_control.py",
    ),
    Fault(
        "a removed input of a node shifts the others",
        "frontends/onnx/graph/rebuild.py",
        "        changed[position] = name\n",
        "        changed[max(position - 1, 0)] = name\n",
        f"{_GRAPH}/test_rebuild.py tests/frontends/onnx/test_model_stream.py",
    ),
    Fault(
        "a stream accepts a reverse layer",
        "frontends/onnx/carried.py",
        "if layer.op.direction.reversed != (False,):",
        "if len(layer.op.direction.reversed) > 1:",
        "tests/frontends/onnx/test_model_stream_errors.py",
    ),
    Fault(
        "a nonzero initial state becomes zero",
        "frontends/onnx/carried.py",
        "            if value.any():\n                return False\n",
        "",
        "tests/frontends/onnx/test_model_stream_errors.py",
    ),
)
