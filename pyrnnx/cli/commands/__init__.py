"""Commands, one module each; importing a module registers its command."""

# The line of each command in the help of all, in its order. A module is imported when its command is asked for.
COMMANDS = {
    "inspect": "Show the inputs, outputs and recurrent layers of a model, and which engine runs each part, and why.",
    "run": "Run a model or a layer, and show its outputs and times.",
    "score": (
        "Run a model over all sequences of a source larger than memory, in several processes or on a Dask cluster."
    ),
    "compare": "Compare two models or layers: their conventions and their numbers.",
    "check": "Compare a model's outputs with those of other runtimes, and show which of them are right.",
    "convert": "Write a model, a recurrent layer of one, or weights as ONNX or as OpenVINO IR.",
    "bench": "Time a model or an operator in pyrnnx and in the installed peers: ONNX Runtime, OpenVINO, PyTorch.",
    "conformance": (
        "Run cases of the recurrent operators in runtimes, and report which results are right, wrong or missing."
    ),
    "config": "Show the engine, instruction sets and threads of this machine, and the versions of packages.",
}
