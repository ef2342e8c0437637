"""Mutants of the activations: names, places, alpha and beta."""

from __future__ import annotations

from mutant import ACTIVATIONS, CELLS, OPENVINO, Mutant

from pyrnnx.testing import reference

FUNCTIONS = (
    *(
        Mutant(
            f"{name} is an arctangent",
            ACTIVATIONS,
            "_CANONICAL = {",
            f'ACTIVATIONS["{name}"] = lambda x, alpha, beta: np.arctan(x)\n_CANONICAL = {{',
            (f"RNN-f={name}", f"GRU-f={name}", f"GRU-g={name}", f"LSTM-f={name}", f"LSTM-g={name}", f"LSTM-h={name}"),
        )
        for name in reference.ACTIVATIONS
    ),
    Mutant(
        "ONNX: activations are ignored",
        ACTIVATIONS,
        "names = canonical_names(operator, names or default * num_directions)",
        "names = canonical_names(operator, default * num_directions)",
        ("RNN-f=Relu", "GRU-g=Softplus", "LSTM-h=Softsign", "GRU-upper-case"),
    ),
    Mutant(
        "OpenVINO: activations are ignored",
        ACTIVATIONS,
        "names = canonical_names(operation, names or default)",
        "names = canonical_names(operation, default)",
        ("RNNSequence-5-f=relu", "GRUCell-3-g=sigmoid", "LSTMSequence-1-h=relu"),
    ),
    Mutant(
        "LSTM: h is always Tanh",
        CELLS,
        "Ht = ot * h(Ct)",
        "Ht = ot * np.tanh(Ct)",
        ("LSTM-h=Relu", "LSTMSequence-5-h=relu", "LSTMCell-4-h=sigmoid"),
    ),
    Mutant(
        "LSTM: g is always Tanh", CELLS, "ct = g(c_in)", "ct = np.tanh(c_in)", ("LSTM-g=Relu", "LSTMCell-1-g=sigmoid")
    ),
    Mutant("GRU: g is always Tanh", CELLS, "ht = g(h_in)", "ht = np.tanh(h_in)", ("GRU-g=Relu", "GRUCell-3-g=relu")),
    Mutant("GRU: r has g, not f", CELLS, "rt = f(r_in)", "rt = g(r_in)", ("GRU-defaults", "GRUSequence-5-defaults")),
    Mutant("LSTM: o has h, not f", CELLS, "ot = f(o_in)", "ot = h(o_in)", ("LSTM-defaults", "LSTMCell-4-defaults")),
    Mutant(
        "the second direction has the functions of the first",
        ACTIVATIONS,
        "functions[start : start + len(default)] for start",
        "functions[: len(default)] for start",
        ("RNN-activations-mixed-0", "GRU-activations-mixed-2", "LSTM-activations-mixed-4"),
    ),
    Mutant(
        "names are known in the spelling of the text only",
        ACTIVATIONS,
        "name.lower() not in _CANONICAL",
        "name not in ACTIVATIONS",
        ("RNN-lower-case", "GRU-upper-case", "LSTM-lower-case", "RNNSequence-5-f=relu"),
    ),
    Mutant(
        "OpenVINO: names are known in small letters only",
        ACTIVATIONS,
        "names = canonical_names(operation, names or default)",
        "names = canonical_names(operation, [one for one in names or default if one.islower() or not names])",
        tuple(f"{one}-names-in-any-case" for one in ("RNNSequence-5", "GRUCell-3", "LSTMSequence-1", "LSTMCell-4")),
    ),
    Mutant(
        "OpenVINO: directions are known in small letters only",
        OPENVINO,
        "str(direction).lower()",
        "direction",
        tuple(f"{one}-names-in-any-case" for one in ("RNNSequence-5", "GRUSequence-5", "LSTMSequence-5")),
    ),
    Mutant(
        "ThresholdedRelu is 0 at alpha",
        ACTIVATIONS,
        "np.where(x < alpha, 0.0, x)",
        "np.where(x <= alpha, 0.0, x)",
        ("RNN-clip-at-threshold", "GRU-clip-at-threshold", "LSTM-clip-at-threshold"),
    ),
)

PARAMETERS = (
    Mutant(
        "one count for alphas and betas: a function that takes an alpha takes a beta, too",
        ACTIVATIONS,
        'if name in BETA and left["activation_beta"]',
        'if name in ALPHA and left["activation_beta"]',
        tuple(f"{one}-alphas-and-betas-counted-apart" for one in ("RNN", "GRU", "LSTM")),
    ),
    Mutant(
        "alphas stand at the places of their functions",
        ACTIVATIONS,
        'if name in ALPHA and left["activation_alpha"]',
        'if left["activation_alpha"]',
        ("GRU-g=LeakyRelu", "LSTM-h=Elu", "GRU-alphas-and-betas-counted-apart"),
    ),
    Mutant(
        "alphas are taken from the last to the first",
        ACTIVATIONS,
        'left["activation_alpha"].pop(0)',
        'left["activation_alpha"].pop()',
        ("RNN-alphas-in-order", "GRU-alphas-in-order", "LSTM-alphas-in-order"),
    ),
    Mutant(
        "the last alpha goes on where they run out",
        ACTIVATIONS,
        'left["activation_alpha"].pop(0) if name in ALPHA and left["activation_alpha"] else None',
        'left["activation_alpha"].pop(0) if name in ALPHA and left["activation_alpha"] else [*(alphas or [None])][-1]',
        ("RNN-alphas-run-out", "GRU-alphas-run-out", "LSTM-alphas-run-out"),
    ),
    *(
        Mutant(
            f"the default alpha of {name} is 0",
            ACTIVATIONS,
            f'"{name}": {alpha},\n',
            f'"{name}": 0.0,\n',
            tuple(f"{one}-default-parameters-{name}" for one in ("RNN", "GRU", "LSTM")),
        )
        for name, alpha in reference.ALPHA.items()
        if alpha is not None
    ),
    Mutant(
        "the default beta of HardSigmoid is 0",
        ACTIVATIONS,
        '"HardSigmoid": 0.5}',
        '"HardSigmoid": 0.0}',
        ("RNN-default-parameters-HardSigmoid", "GRUSequence-5-default-parameters", "LSTMCell-1-default-parameters"),
    ),
    Mutant(
        "OpenVINO: parameters are taken one after the other",
        ACTIVATIONS,
        "alphas, betas = list(alphas or ()), list(betas or ())",
        "left = iter(alphas or ())\n"
        "    alphas = [next(left, None) if name in ALPHA else None for name in names]\n"
        "    betas = list(betas or ())",
        ("GRUSequence-5-g=leakyrelu", "LSTMCell-4-h=elu", "LSTMSequence-1-g=scaledtanh"),
    ),
)
