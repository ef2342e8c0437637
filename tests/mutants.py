"""The oracle with one mistake: a mutant is one edit of the oracle's source.

No usual mistake of `assert_same` is one of these: they are of arrangements, functions, sizes and numbers. Each case in
`killed_by` must fail the mutant by itself.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from pyrnnx import reference

# The files of the oracle.
CELLS, ACTIVATIONS, ARGUMENTS, OPERATORS = "cells.py", "activations.py", "arguments.py", "operators.py"


@dataclass(frozen=True)
class Mutant:
    """`does` says what is wrong when the one `old` in the file is `new`; `more` is put at the file's end."""

    does: str
    file: str
    old: str
    new: str
    killed_by: tuple[str, ...]
    more: str = ""

    def load(self, folder: Path) -> ModuleType:
        """The mutated oracle, a package of its own in a folder that is not there yet."""
        copy_oracle(folder)
        text = (folder / self.file).read_text()
        assert text.count(self.old) == 1, f"{self.file} has {text.count(self.old)} times {self.old!r}"
        (folder / self.file).write_text(text.replace(self.old, self.new) + self.more)
        for compiled in (folder / "__pycache__").glob(f"{Path(self.file).stem}.*"):
            compiled.unlink()
        return load_package(folder)


def copy_oracle(folder: Path) -> None:
    """Copy the oracle with its bytecode, without files that another process is writing."""
    shutil.copytree(Path(reference.__file__).parent, folder, ignore=shutil.ignore_patterns("*.pyc.*"))


def load_package(folder: Path, name: str = "mutated_oracle") -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(package)
    finally:  # the next one has the same name
        for loaded in [one for one in sys.modules if one.partition(".")[0] == name]:
            del sys.modules[loaded]
    return package


def table(text: str) -> tuple[Mutant, ...]:
    """Return the mutants of a text: what each does [its file], then indented "old => new" and the cases that kill it.

    A line that ends in "=>" goes on in the next one; \\n stands for the end of a line.
    """
    mutants = []
    for block in re.split(r"^(?=\S)", text.strip("\n"), flags=re.MULTILINE)[1:]:
        head, edit, *killers = re.sub(r"=>\n +", "=> ", block).strip("\n").split("\n")
        old, new = edit[4:].replace("\\n", "\n").split(" => ")
        does, _, file = head.removesuffix("]").rpartition(" [")
        mutants.append(Mutant(does, file, old, new, tuple(" ".join(killers).replace(",", "").split())))
    return tuple(mutants)


STEP = "computed = step(direction, X[t, rows], "

NARROW = """

class Narrow:
    def __init__(self, x, dtype):
        self.x, self.dtype = x, dtype

    def __matmul__(self, w):
        total = np.zeros((len(self.x), w.shape[1]), self.dtype)
        for x, row in zip(self.x.T, w, strict=True):
            total = (total + np.outer(x, row)).astype(self.dtype)
        return total.astype(np.float64)
"""

MUTANTS = (
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
    *(
        Mutant(
            f"what X is multiplied with is summed in {dtype}",
            CELLS,
            STEP,
            f"computed = step(direction, Narrow(X[t, rows], {scalar}), ",
            (
                f"RNN-{dtype}-wide",
                f"GRU-{dtype}-wide",
                f"LSTM-{dtype}-wide",
                f"RNNSequence-5-{dtype}",
                f"LSTMCell-1-{dtype}",
            ),
            more=NARROW,
        )
        for dtype, scalar in (("float16", "np.float16"), ("bfloat16", "__import__('ml_dtypes').bfloat16"))
    ),
    *table(r"""
OpenVINO's gates in ONNX's order [operators.py]
    "LSTM": "fico" => "LSTM": "iofc"
    LSTMSequence-5-defaults LSTMSequence-1-defaults LSTMCell-4-defaults LSTMCell-1-defaults
RNN: R is not transposed, as the texts of opsets 1 to 6 write it [cells.py]
    i_in = p.clipped(Xt @ W["i"].T + Ht_1 @ R["i"].T + Wb["i"] + Rb["i"])\n    Ht =>
    i_in = p.clipped(Xt @ W["i"].T + Ht_1 @ R["i"] + Wb["i"] + Rb["i"])\n    Ht
    RNN-opset1 RNN-opset6
OpenVINO with linear_before_reset: the last two blocks of B are exchanged [operators.py]
    split(B, order + "H") => split(B, order[:-1] + "H" + order[-1])
    GRUSequence-5-linear_before_reset GRUCell-3-linear_before_reset
clip bounds from above only [cells.py]
    return np.minimum(np.maximum(x, -self.clip), self.clip) => return np.minimum(x, self.clip)
    RNN-only-clip GRU-only-clip LSTM-only-clip LSTMSequence-5-clip
RNN: clip before the bias [cells.py]
    i_in = p.clipped(Xt @ W["i"].T + Ht_1 @ R["i"].T + Wb["i"] + Rb["i"])\n    Ht =>
    i_in = p.clipped(Xt @ W["i"].T + Ht_1 @ R["i"].T) + Wb["i"] + Rb["i"]\n    Ht
    RNN-clip RNNCell-1-clip
LSTM: clip before the bias of c [cells.py]
    c_in = p.clipped(Xt @ W["c"].T + Ht_1 @ R["c"].T + Wb["c"] + Rb["c"]) =>
    c_in = p.clipped(Xt @ W["c"].T + Ht_1 @ R["c"].T) + Wb["c"] + Rb["c"]
    LSTM-input_forget=0-clip LSTMCell-4-clip
LSTM: clip before the peephole of o [cells.py]
    P["o"] * Ct + Wb["o"] + Rb["o"]) => Wb["o"] + Rb["o"]) + P["o"] * Ct
    LSTM-input_forget=0-clip LSTMCell-1-clip
OpenVINO: clip 0 bounds by 0 [operators.py]
    return clip or np.inf => return np.inf if clip is None else clip
    RNNSequence-5-clip=0 GRUCell-3-clip=0 LSTMSequence-1-clip=0
the valid rows are the first ones, as if sorted by falling length [cells.py]
    rows = np.flatnonzero(lens > k) => rows = np.arange((lens > k).sum())
    RNN-ragged GRUSequence-5-sequence_lengths
steps after the hundredth are left out [cells.py]
    range(int(lens.max(initial=0))) => range(min(int(lens.max(initial=0)), 100))
    RNN-long LSTMSequence-5-long
OpenVINO: X as if time came first [operators.py]
    X="NTI",\n    Y="NDTH" => X="TNI",\n    Y="NDTH"
    RNNSequence-5-defaults LSTMSequence-1-defaults
OpenVINO: Y is [N, T, D, H] [operators.py]
    "NDTH" => "NTDH"
    RNNSequence-5-bidirectional GRUSequence-5-defaults
initial states are [D, N, H] [operators.py]
    canonical(name, form.state, "DNH") => canonical(name, form.state, form.state).reshape(D, N, H)
    RNNSequence-5-bidirectional LSTMSequence-1-bidirectional RNN-bidirectional-layout1,
    LSTM-input_forget=0-bidirectional-layout1
last states are [D, N, H] [operators.py]
    _arranged(state, "DNH", form.state) => state if not is_cell else state[0]
    GRUSequence-5-bidirectional RNN-only-layout GRU-linear_before_reset=0-bidirectional-layout1
layout 1 is ignored in Y [operators.py]
    Y="NTDH" => Y="TDNH"
    RNN-only-layout GRU-only-layout LSTM-only-layout
OpenVINO: P in the order iof [operators.py]
    peepholes="fio" => peepholes="iof"
    LSTMSequence-1-P-forward LSTMSequence-1-P-reverse LSTMCell-1-P
ONNX: input_forget computes i, not f [operators.py]
    else a.coupled_gate if is_onnx else "i" => else "i"
    LSTM-input_forget=1-bias
OpenVINO: input_forget computes f, not i [operators.py]
    else a.coupled_gate if is_onnx else "i" => else "f"
    LSTMSequence-1-input_forget-reverse LSTMSequence-1-input_forget-P-clip-reverse LSTMCell-1-input_forget,
    LSTMCell-1-input_forget-relu
without hidden_size there is no answer [arguments.py]
    if declared is not None and declared != H: => if declared != H:
    RNN-hidden_size-left-out GRU-hidden_size-left-out LSTM-hidden_size-left-out GRU-opset1-defaults
output_sequence is not known [operators.py]
    getattr(a, name), (0, 1)) => getattr(a, name), (0,) if name == "output_sequence" else (0, 1))
    RNN-opset1-output_sequence=1 LSTM-opset6-output_sequence=1 GRU-opset3-all-attributes
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
axes of length 1 are dropped from the results [operators.py]
    return (*results, values) if a.steps else tuple(results) => return tuple(np.squeeze(one) for one in results)
    RNN-T1 GRU-N=1 LSTM-H=1 LSTM-all-1 RNNSequence-5-T=1 GRUCell-3-N=1 LSTMSequence-1-H=1
a single input is given to no gate [cells.py]
    computed = step(direction, X[t, rows], =>
    computed = step(direction, X[t, rows] * (X.shape[2] > 1),
    RNN-I=1 LSTMCell-1-I=1
rows after the sixteenth are left out [cells.py]
    slice(None) => slice(16)
    RNN-wide LSTMSequence-5-wide LSTMCell-1-wide
an empty batch is refused [cells.py]
    range(int(lens.max(initial=0))) => range(int(lens.max()))
    RNN-N=0 LSTM-N=0-layout1 GRU-N=0-T=0-I=0 RNNSequence-5-N=0 LSTMCell-4-N=0
no inputs: nothing is computed [cells.py]
    range(int(lens.max(initial=0))) => range(int(lens.max(initial=0)) if X.size else 0)
    RNN-I=0 LSTM-I=0 GRUSequence-5-I=0 LSTMCell-1-I=0
float64 is computed in float32 [arguments.py]
    return array.astype(np.float64) => return array.astype(np.float32).astype(np.float64)
    RNN-float64 GRU-float64-wide LSTM-float64 RNNSequence-5-float64 GRUCell-3-float64
Sigmoid of a large argument is NaN [activations.py]
    return np.where(x >= 0, 1.0, e) / (1.0 + e) => return np.exp(x) / (1.0 + np.exp(x))
    GRU-large-values LSTM-large-values GRUSequence-5-large-values LSTMCell-4-large-values
Tanh of a large argument is NaN [activations.py]
    lambda x, alpha, beta: np.tanh(x) => lambda x, alpha, beta: (np.exp(2 * x) - 1) / (np.exp(2 * x) + 1)
    RNN-large-values GRU-large-values RNNSequence-5-large-values RNNCell-1-large-values
Softplus of a large argument is infinite [activations.py]
    np.logaddexp(0.0, x) => np.log(1.0 + np.exp(x))
    RNN-large-values-Softplus GRU-large-values-Softplus
the padding is read, and multiplied by 0 [cells.py]
    computed = step(direction, X[t, rows], =>
    computed = step(direction, X[t, rows] + 0.0 * X[-1, rows],
    RNN-NaN-in-padding-forward-layout0 LSTM-NaN-in-padding-reverse-layout1 RNNSequence-5-NaN-in-padding-forward,
    LSTMSequence-1-NaN-in-padding-bidirectional
a NaN reaches the other rows, multiplied by 0 [cells.py]
    computed = step(direction, X[t, rows], =>
    computed = step(direction, X[t, rows] + 0.0 * X[t, rows].sum(axis=0),
    RNN-NaN-in-a-row GRU-NaN-in-a-row-all-inputs LSTMSequence-5-NaN-in-a-row
clip swallows a NaN [cells.py]
    if self.clip == np.inf:\n            return x\n        return np.minimum(np.maximum(x, -self.clip), self.clip) =>
    return np.fmin(np.fmax(x, -self.clip), self.clip)
    RNN-NaN-in-a-row LSTM-NaN-in-a-row GRUSequence-5-NaN-in-a-row
"""),
)
