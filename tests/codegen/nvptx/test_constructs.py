"""Each construct of kernels: its PTX goes through ptxas, and its numbers are right by the interpreter's threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.codegen.nvptx.cases import CASES

from tilewright.tir.interpreter import interpret

ARCHS = ("sm_75", "sm_80", "sm_89", "sm_90a")


@pytest.mark.parametrize("name", CASES)
def test_assembles(kit: Any, name: str) -> None:
    case = CASES[name]()
    for arch in ARCHS[ARCHS.index(case.arch) :]:
        ptx = kit.ptx(case.schedule, case.args, arch)
        report = kit.assemble(ptx, arch)
        assert report.stack == 0 and not report.spills


@pytest.mark.parametrize("name", CASES)
def test_numbers(kit: Any, name: str) -> None:
    case = CASES[name]()
    interpret(kit.threaded(case.schedule, case.args, case.arch), *case.arrays)
    for array, wanted in zip(case.arrays, case.wanted, strict=True):
        if wanted is not None:
            np.testing.assert_allclose(array, wanted, rtol=case.tolerance, atol=case.tolerance)
