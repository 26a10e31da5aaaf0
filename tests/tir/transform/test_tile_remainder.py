"""Tiles of a dynamic extent leave rows over, which are computed in smaller tiles; results never change."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.tir.op import likely
from tilewright.tir.transform.simplify import Simplify
from tilewright.tir.transform.tile_remainder import TileRemainder


def tiled(
    tile: int, kind: str = "unroll", unguarded: bool = False, outer_kind: str = "serial"
) -> tir.PrimFunc:
    """for o: for i in tile: if likely(o * tile + i < n): A[o * tile + i] += i + 1"""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    b = builder.pointer("int32", name="B")
    n = tir.SizeVar("n", "int32")
    # The builder cannot name a loop's axis, so the pragma has any other node.
    builder.scope_attr(a.asobject(), "pragma_tile_remainder", tile)
    with builder.for_range(0, (n + tile - 1) // tile, name="o", kind=outer_kind) as o:
        if unguarded:
            b[0] = b[0] + 1
        with builder.for_range(0, tile, name="i", kind=kind) as i, builder.if_scope(likely(o * tile + i < n)):
            a[o * tile + i] = a[o * tile + i] + i * 0 + 1
    return tir.PrimFunc([a.asobject(), b.asobject(), n], builder.get())


@pytest.mark.parametrize(("kind", "tile"), [("unroll", 6), ("unroll", 3), ("unroll", 2), ("vectorize", 16)])
def test_no_guard_is_left(kind, tile, apply, agree, nodes_of):
    """Whole tiles, tiles of a few rows and single rows together compute every row once, without guards."""
    before = tiled(tile, kind)
    after = apply(before, TileRemainder(), Simplify())
    assert not nodes_of(after.body, tir.IfThenElse)
    extents = [repr(loop.extent) for loop in nodes_of(after.body, tir.For) if loop.loop_var.name == "o"]
    assert extents[0] == f"n // {tile}" and len(extents) == (3 if tile > 3 else 2)
    for length in (0, 1, 2, 5, 6, 7, 11, 17, 35):
        agree(before, after, np.arange(length, dtype="int32"), np.zeros(1, "int32"), length)


def test_remainder_of_a_parallel_loop_is_serial(apply, nodes_of):
    """The few rows that are left over are not worth waking threads for."""
    after = apply(tiled(6, outer_kind="parallel"), TileRemainder())
    kinds = [loop.kind for loop in nodes_of(after.body, tir.For) if loop.loop_var.name == "o"]
    assert [kind == tir.ForKind.PARALLEL for kind in kinds] == [True, False, False]


def test_statement_without_guard_stays(apply, agree, nodes_of):
    """A statement that does not belong to a row would be repeated: the loop stays as it is, with its guards."""
    before = tiled(6, unguarded=True)
    after = apply(before, TileRemainder())
    assert len(nodes_of(after.body, tir.IfThenElse)) == 1
    agree(before, after, np.arange(17, dtype="int32"), np.zeros(1, "int32"), 17)


def test_other_use_of_the_loop_stays(apply, nodes_of):
    """The number of a tile has no meaning in smaller ones: a loop that uses it by itself keeps its guards."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    n = tir.SizeVar("n", "int32")
    builder.scope_attr(a.asobject(), "pragma_tile_remainder", 4)
    with (
        builder.for_range(0, (n + 3) // 4, name="o") as o,
        builder.for_range(0, 4, name="i") as i,
        builder.if_scope(likely(o * 4 + i < n)),
    ):
        a[o * 4 + i] = o
    after = apply(tir.PrimFunc([a.asobject(), n], builder.get()), TileRemainder())
    assert len(nodes_of(after.body, tir.IfThenElse)) == 1
