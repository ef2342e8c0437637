"""Every operation that is translated, at least one case for each branch of its attributes: OpenVINO's numbers."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import numpy as np
import pytest
from openvino_decoding import AROUND
from openvino_elementwise import ELEMENTWISE, SHAPES
from openvino_indexing import INDEXING, REDUCTIONS
from openvino_irs import check, run_there, save, types_in
from openvino_linear import IMAGES, LINEAR, POOLING, SPECTRA
from openvino_operations import Case, build, i32, ops

from pyrnnx.frontends.openvino.schemas import TYPES
from pyrnnx.frontends.openvino.translation.operations import TRANSLATORS

openvino = pytest.importorskip("openvino")
CASES = ELEMENTWISE + SHAPES + INDEXING + REDUCTIONS + LINEAR + POOLING + IMAGES + SPECTRA + AROUND


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_same_numbers(case: Case, tmp_path: Path) -> None:
    """With every dimension of the inputs open, where the operation is translated then."""
    run(case, case.dynamic, tmp_path)


@pytest.mark.parametrize("case", [case for case in POOLING if " ceil" in case.name], ids=lambda case: case.name)
def test_rounding_of_pooling_with_fixed_shapes(case: Case, tmp_path: Path) -> None:
    """Pads are then numbers, and with open shapes nodes."""
    run(case, False, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case.dynamic], ids=lambda case: case.name)
def test_same_numbers_of_fixed_shapes(case: Case, tmp_path: Path) -> None:
    run(case, False, tmp_path)


def run(case: Case, dynamic: bool, folder: Path) -> None:
    model, arrays = build(case, dynamic=dynamic)
    path = save(model, folder)
    written = {kind for kind, _ in types_in(path)}
    assert case.type in written, f"OpenVINO writes it as {written}"
    check(path, arrays, tolerance=case.tolerance)


def test_there_integers_are_divided_towards_zero(tmp_path: Path) -> None:
    """Text of Divide-1: m_pythondiv, true by default, "rounds to the smallest integer". The CPU plugin does not."""
    case = Case(
        "Divide floor", lambda p: ops(1).divide(p(of=[7, -7, 7, -7], dtype=i32), p(of=[2, 2, -2, -2], dtype=i32))
    )
    model, arrays = build(case)
    path = save(model, tmp_path)
    assert run_there(path, arrays)[0].tolist() == [3, -3, -3, 3]
    check(path, arrays, expected=[np.array([3, -4, -4, 3], i32)])


def test_every_translator_has_a_case() -> None:
    covered = {case.type.lower() for case in CASES} | {kind.lower() for kind in TYPES}
    assert sorted(set(TRANSLATORS) - covered - WITHOUT_CASE) == []


# What the Python API of OpenVINO does not make: an operation of its plugins. It is run in test_versions.
WITHOUT_CASE = {"rms"}


# What a version is called by: the opset that introduced it. Not in the wheel: LSTMSequence-1. Not here: Interpolate-1.
NEWEST = max(int(one.name.removeprefix("opset")) for one in iter_modules(openvino.__path__) if one.name[:5] == "opset")
FACTORY_NAMES = {"prelu": "PRelu", "relu": "Relu", "softmax": "Softmax"}  # where they are not those of an IR
GONE, UNTRANSLATED = {("lstmsequence", 1)}, {("interpolate", 1)}


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
    for kind in TRANSLATORS.keys() - WITHOUT_CASE:
        theirs = {(kind, first) for first in versions_of(spelt[kind])} - UNTRANSLATED
        ours = {(kind, first) for first in TRANSLATORS[kind]} - GONE
        if not ours <= theirs or min(ours) != min(theirs):
            wrong[kind] = ours, theirs
    assert wrong == {}
