"""The parts of a fused parallel loop are computed once an iteration; results never change."""

import numpy as np

from tilewright import tir
from tilewright.tir.transform.bind_fused_parts import BindFusedParts


def fused(kind: str) -> tuple[tir.PrimFunc, tir.Var]:
    """for f in n * h: for w in 3: if h > 1: A[f // h, f % h, w] = f // h * 10 + f % h"""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    n, h = (tir.SizeVar(name, "int32") for name in "nh")
    with builder.for_range(0, n * h, name="f", kind=kind) as f, builder.for_range(0, 3, name="w") as w:
        outer, inner = tir.floordiv(f, h), tir.floormod(f, h)
        with builder.if_scope(h > 1):
            a[(outer * h + inner) * 3 + w] = outer * 10 + inner
    return tir.PrimFunc([a.asobject(), n, h], builder.get()), h


def test_quotient_and_remainder_are_bound(apply, agree, nodes_of):
    """One division and one remainder are left, in front of the inner loop."""
    before, _ = fused("parallel")
    after = apply(before, BindFusedParts())
    bound = nodes_of(after.body, tir.LetStmt)
    assert sorted(type(one.value).__name__ for one in bound) == ["FloorDiv", "FloorMod"]
    assert len(nodes_of(after.body, tir.FloorDiv)) == len(nodes_of(after.body, tir.FloorMod)) == 1
    for sizes in ((2, 3), (0, 4), (3, 0), (4, 1)):
        agree(before, after, np.zeros(3 * sizes[0] * sizes[1], "int32"), *sizes)


def test_division_by_another_number_stays(apply, nodes_of):
    """Only a factor of the extent is known not to be zero inside the loop."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    n, h = (tir.SizeVar(name, "int32") for name in "nh")
    with builder.for_range(0, n, name="f", kind="parallel") as f, builder.if_scope(h > 0):
        a[f] = tir.floordiv(f, h)
    after = apply(tir.PrimFunc([a.asobject(), n, h], builder.get()), BindFusedParts())
    assert not nodes_of(after.body, tir.LetStmt)


def test_serial_loops_stay(apply):
    """A serial loop was not fused for threads; what it divides by may be anything."""
    before, _ = fused("serial")
    assert apply(before, BindFusedParts()).body is before.body
