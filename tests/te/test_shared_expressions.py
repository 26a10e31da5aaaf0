"""Expressions are graphs: what is shared is compiled once, however often it is used."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te


@pytest.mark.parametrize("vectorized", [False, True])
@pytest.mark.parametrize("target", ["llvm", "c"])
def test_two_hundred_doublings(vectorized: bool, target: str) -> None:
    """Each step uses the one before twice: as a tree this has 2**200 nodes, as a graph 600."""
    a = te.placeholder((8,), name="A")

    def halves(i: object) -> object:
        value = a[i] * 1.0
        for _ in range(200):
            value = value * 0.5 + value * 0.5
        return value

    b = te.compute((8,), halves, name="B")
    s = te.create_schedule(b.op)
    if vectorized:
        _, inner = s[b].split(b.op.axis[0], factor=4)
        s[b].vectorize(inner)
    module = tvm.build(s, [a, b], target, name="halves")
    if target == "c":
        assert len(module.get_source()) < 10_000_000
        return
    values, result = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    module(values, result)
    np.testing.assert_array_equal(result, values)


def test_a_long_chain() -> None:
    """An expression of twenty thousand steps is lowered and compiled without running out of stack."""
    a = te.placeholder((4,), name="A", dtype="int32")

    def chain(i: object) -> object:
        value = a[i] + 0
        for step in range(20_000):
            value = (value ^ step) + 1
        return value

    b = te.compute((4,), chain, name="B")
    lowered = tvm.lower(te.create_schedule(b.op), [a, b])
    assert "main" in [variable.name_hint for variable in lowered.functions]
