"""Mutants of the activations: names, positions, alpha and beta."""

from __future__ import annotations

from mutant import ACTIVATIONS, Mutant, table

from pyrnnx import reference

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
    *table(r"""
ONNX: activations are ignored [activations.py]
    names = canonical_names(operator, names or default * num_directions) =>
    names = canonical_names(operator, default * num_directions)
    RNN-f=Relu GRU-g=Softplus LSTM-h=Softsign GRU-upper-case
OpenVINO: activations are ignored [activations.py]
    names = canonical_names(operation, names or default) => names = canonical_names(operation, default)
    RNNSequence-5-f=relu GRUCell-3-g=sigmoid LSTMSequence-1-h=relu
LSTM: h is always Tanh [cells.py]
    Ht = ot * h(Ct) => Ht = ot * np.tanh(Ct)
    LSTM-h=Relu LSTMSequence-5-h=relu LSTMCell-4-h=sigmoid
LSTM: g is always Tanh [cells.py]
    ct = g(c_in) => ct = np.tanh(c_in)
    LSTM-g=Relu LSTMCell-1-g=sigmoid
GRU: g is always Tanh [cells.py]
    ht = g(h_in) => ht = np.tanh(h_in)
    GRU-g=Relu GRUCell-3-g=relu
GRU: r has g, not f [cells.py]
    rt = f(r_in) => rt = g(r_in)
    GRU-defaults GRUSequence-5-defaults
LSTM: o has h, not f [cells.py]
    ot = f(o_in) => ot = h(o_in)
    LSTM-defaults LSTMCell-4-defaults
the second direction has the functions of the first [activations.py]
    functions[start : start + len(default)] for start => functions[: len(default)] for start
    RNN-activations-mixed-0 GRU-activations-mixed-2 LSTM-activations-mixed-4
names are known in the spelling of the text only [activations.py]
    name.lower() not in _CANONICAL => name not in ACTIVATIONS
    RNN-lower-case GRU-upper-case LSTM-lower-case RNNSequence-5-f=relu
OpenVINO: names are known in small letters only [activations.py]
    names = canonical_names(operation, names or default) =>
    names = canonical_names(operation, [one for one in names or default if one.islower() or not names])
    RNNSequence-5-names-in-any-case GRUCell-3-names-in-any-case LSTMSequence-1-names-in-any-case,
    LSTMCell-4-names-in-any-case
OpenVINO: directions are known in small letters only [operators.py]
    str(a.direction).lower() => a.direction
    RNNSequence-5-names-in-any-case GRUSequence-5-names-in-any-case LSTMSequence-5-names-in-any-case
ThresholdedRelu is 0 at alpha [activations.py]
    np.where(x < alpha, 0.0, x) => np.where(x <= alpha, 0.0, x)
    RNN-clip-at-threshold GRU-clip-at-threshold LSTM-clip-at-threshold
"""),
)

PARAMETERS = (
    Mutant(
        "OpenVINO: parameters are taken one after the other",
        ACTIVATIONS,
        "alphas, betas = list(alphas or ()), list(betas or ())",
        "left, betas = iter(alphas or ()), list(betas or ())\n"
        "    alphas = [next(left, None) if name in ALPHA else None for name in names]",
        ("GRUSequence-5-g=leakyrelu", "LSTMCell-4-h=elu", "LSTMSequence-1-g=scaledtanh"),
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
    *table(r"""
one count for alphas and betas: a function that takes an alpha takes a beta, too [activations.py]
    if name in BETA and unused["activation_beta"] => if name in ALPHA and unused["activation_beta"]
    RNN-alphas-and-betas-counted-apart GRU-alphas-and-betas-counted-apart LSTM-alphas-and-betas-counted-apart
alphas stand at the places of their functions [activations.py]
    if name in ALPHA and unused["activation_alpha"] => if unused["activation_alpha"]
    GRU-g=LeakyRelu LSTM-h=Elu GRU-alphas-and-betas-counted-apart
alphas are taken from the last to the first [activations.py]
    unused["activation_alpha"].pop(0) => unused["activation_alpha"].pop()
    RNN-alphas-in-order GRU-alphas-in-order LSTM-alphas-in-order
the last alpha goes on where they run out [activations.py]
    unused["activation_alpha"].pop(0) if name in ALPHA and unused["activation_alpha"] else None =>
    unused["activation_alpha"].pop(0) if name in ALPHA and unused["activation_alpha"] else [*(alphas or [None])][-1]
    RNN-alphas-run-out GRU-alphas-run-out LSTM-alphas-run-out
the default beta of HardSigmoid is 0 [activations.py]
    "HardSigmoid": 0.5} => "HardSigmoid": 0.0}
    RNN-default-parameters-HardSigmoid GRUSequence-5-default-parameters LSTMCell-1-default-parameters
"""),
)
