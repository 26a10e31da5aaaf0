"""The axes of blocks are replaced by their values."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.ir.buffer import BufferRegion
from tilewright.ir.expr import Range
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.convert_blocks_to_opaque import ConvertBlocksToOpaque


def tiled():
    """B[vi] = A[vi] + 1 with vi = o * 4 + i, under a predicate."""
    a, b = tir.decl_buffer((10,), "int32", "A"), tir.decl_buffer((10,), "int32", "B")
    o, i, vi = (tir.Var(name, "int32") for name in ("o", "i", "vi"))
    read = BufferRegion(a, (Range.from_min_extent(vi, 1),))
    block = tir.Block(
        [tir.IterVar(Range(0, 10), vi, tir.IterVar.DataPar)],
        [read],
        [],
        "b",
        tir.BufferStore(b, a[vi] + 1, [vi]),
    )
    body = tir.BlockRealize([o * 4 + i], o * 4 + i < 10, block)
    return tir.PrimFunc([a, b], tir.For(o, 0, 3, 0, tir.For(i, 0, 4, 0, body)))


def test_axes_become_values(apply, agree, nodes_of):
    """Body and boxes use the loop variables; the block has no axes, and the predicate stays."""
    before = tiled()
    after = apply(before, ConvertBlocksToOpaque())
    (realize,) = nodes_of(after.body, tir.BlockRealize)
    assert realize.block.iter_vars == () and repr(realize.predicate) == "o * 4 + i < 10"
    assert repr(realize.block.body.indices[0]) == "o * 4 + i"
    assert repr(realize.block.reads[0].region[0].min) == "o * 4 + i"
    agree(before, after, np.arange(10, dtype="int32"), np.zeros(10, "int32"))


def test_initialisation_must_be_gone(apply):
    """A block with ``init`` is refused with the pass to run first."""
    b = tir.decl_buffer((4,), "int32", "B")
    store = tir.BufferStore(b, 1, [0])
    function = tir.PrimFunc([b], tir.BlockRealize([], True, tir.Block([], [], [], "b", store, init=store)))
    with pytest.raises(LoweringError, match="LowerInitBlock"):
        apply(function, ConvertBlocksToOpaque())
