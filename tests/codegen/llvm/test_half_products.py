"""Products of float16 numbers with float32 sums: AArch64's instructions take the numbers as they are."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tvm
from tilewright import te

V1 = "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1"


def assembly(lanes: int, target: str) -> str:
    """``c[j] += float32(a[k]) * float32(b[k, j])``, with ``j`` in a vector."""
    a, b = te.placeholder((16,), "float16", "a"), te.placeholder((16, lanes), "float16", "b")
    k = te.reduce_axis((0, 16), "k")

    def element(j: Any) -> Any:
        return te.sum(a[k].astype("float32") * b[k, j].astype("float32"), axis=k)

    c = te.compute((lanes,), element, "c")
    schedule = te.create_schedule(c.op)
    (j,) = c.op.axis
    schedule[c].reorder(*c.op.reduce_axis, j)
    schedule[c].vectorize(j)
    return str(tvm.build(schedule, [a, b, c], target).get_source("asm"))


@pytest.mark.parametrize(("lanes", "has_upper"), [(4, False), (8, True), (12, True), (32, True)])
def test_numbers_are_not_widened(lanes: int, has_upper: bool) -> None:
    """Both halves of a register have an instruction; a vector of four takes the lower one only."""
    text = assembly(lanes, V1)
    assert "fmlal\t" in text and ("fmlal2\t" in text) == has_upper
    assert "fcvtl" not in text


@pytest.mark.parametrize(
    ("lanes", "target"),
    [
        (6, V1),
        (8, "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a76"),
        (8, f"{V1} -mattr=-fp16fml"),
    ],
    ids=["a part of a register", "another processor", "without the feature"],
)
def test_elsewhere_they_are(lanes: int, target: str) -> None:
    """Where there is no such instruction, or no vector for it."""
    text = assembly(lanes, target)
    assert "fmlal" not in text and "fcvt" in text
