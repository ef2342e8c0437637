"""Every translated operation, with a case for each branch of its attributes, compared with OpenVINO."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest
from openvino_elementwise import ELEMENTWISE, SHAPES
from openvino_indexing import INDEXING, REDUCTIONS
from openvino_irs import check, save, types_in
from openvino_linear import IMAGES, LINEAR, POOLING, SPECTRA
from openvino_operations import Case, build
from rows import together

from pyrnnx.frontends.openvino import OPERATIONS
from pyrnnx.frontends.openvino.schemas import TYPES
from pyrnnx.frontends.openvino.translation.operations import TRANSLATORS

openvino = pytest.importorskip("openvino")
CASES = ELEMENTWISE + SHAPES + INDEXING + REDUCTIONS + LINEAR + POOLING + IMAGES + SPECTRA


TOLERANCES = sorted({case.tolerance for case in CASES})
OPEN = [pytest.param(False, marks=pytest.mark.slow), True]


@pytest.mark.parametrize("dynamic", OPEN, ids=["fixed", "open"])
@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_same_numbers(tolerance: float, dynamic: bool, tmp_path: Path) -> None:
    """All dimensions are open if the operation can be translated so; one model has dozens of operations."""

    def check(cases: list[Case]) -> None:
        for start in range(0, len(cases), 50):
            run(cases[start : start + 50], dynamic, tmp_path)

    def alone(case: Case) -> None:
        run([case], dynamic, tmp_path)

    together(check, alone, [case for case in CASES if case.tolerance == tolerance])


def test_rounding_of_pooling_with_fixed_shapes(tmp_path: Path) -> None:
    """Pads are then numbers, and with open shapes nodes."""
    run([case for case in POOLING if " ceil" in case.name], False, tmp_path)


def run(cases: list[Case], dynamic: bool, folder: Path) -> None:
    model, arrays = build(*cases, dynamic=dynamic)
    path = save(model, folder)
    written = {kind for kind, _ in types_in(path)}
    assert {case.type for case in cases} <= written, f"OpenVINO writes them as {written}"
    check(path, arrays, tolerance=cases[0].tolerance)


# A version is named after the opset that introduced it. Not in the wheel: LSTMSequence-1.
NEWEST = max(int(one.name.removeprefix("opset")) for one in iter_modules(openvino.__path__) if one.name[:5] == "opset")
FACTORY_NAMES = {"prelu": "PRelu", "relu": "Relu", "softmax": "Softmax"}  # where they are not those of an IR
FACTORY_NAMES |= {kind.lower(): kind for kind in ("TensorIterator", "Loop", "If", "ReadValue", "Assign")}
GONE, UNTRANSLATED = {("lstmsequence", 1)}, {("interpolate", 1), ("gathernd", 5)}


def versions_of(kind: str) -> set[int]:
    factory = import_module("openvino.utils.node_factory").NodeFactory
    found = set()
    for number in range(1, NEWEST + 1):
        with suppress(RuntimeError):  # no such operation in that opset
            info = factory(f"opset{number}").create(kind).get_type_info()
            found.add(int(info.version_id.removeprefix("opset")))
    return found


def test_versions_are_openvinos() -> None:
    """The first opset of every row is one that has a version of its own, and no earlier version is left out."""
    spelt = {case.type.lower(): case.type for case in CASES} | {kind.lower(): kind for kind in TYPES} | FACTORY_NAMES
    wrong = {}
    for kind in TRANSLATORS:
        theirs = {(kind, first) for first in versions_of(spelt[kind])} - UNTRANSLATED
        ours = {(kind, first) for first in TRANSLATORS[kind]} - GONE
        if not ours <= theirs or min(ours) != min(theirs):
            wrong[kind] = ours, theirs
    assert wrong == {}


def test_every_registered_version_has_a_row() -> None:
    """By type and the first opset that a translator is for."""
    run = {(row.type.lower(), row.first_opset) for row in OPERATIONS.values()}
    run |= {("tensoriterator", 1), ("loop", 5), ("if", 8), ("readvalue", 3), ("assign", 3)}  # test_bodies, test_states
    for case in CASES:
        kinds = [node.get_type_info() for node in build(case)[0].get_ordered_ops()]
        # what is beside the operation that the case is of does not count
        own = [kind for kind in kinds if kind.name.lower() == case.type.lower()]
        assert own, case.name
        run |= {(kind.name.lower(), int(kind.version_id.removeprefix("opset"))) for kind in own}
    missing = []
    for kind, rows in TRANSLATORS.items():
        firsts = sorted(rows)
        for first, following in zip(firsts, [*firsts[1:], 10**9], strict=True):
            if not any(name == kind and first <= opset < following for name, opset in run):
                missing.append((kind, first))
    assert missing == []
