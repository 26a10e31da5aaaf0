"""The initialisation of a reduction runs where its axes are at their start."""

import numpy as np

from tilewright import tir
from tilewright.ir.expr import Range
from tilewright.tir.transform.lower_init_block import LowerInitBlock, lower_init_block


def row_sum():
    """B[i] = sum over k of A[i, k], as one block."""
    a, b = tir.decl_buffer((4, 6), "int32", "A"), tir.decl_buffer((4,), "int32", "B")
    i, k, vi, vk = (tir.Var(name, "int32") for name in ("i", "k", "vi", "vk"))
    axes = [
        tir.IterVar(Range(0, 4), vi, tir.IterVar.DataPar),
        tir.IterVar(Range(0, 6), vk, tir.IterVar.CommReduce),
    ]
    update = tir.BufferStore(b, b[vi] + a[vi, vk], [vi])
    block = tir.Block(axes, [], [], "sum", update, init=tir.BufferStore(b, 0, [vi]))
    body = tir.For(i, 0, 4, 0, tir.For(k, 0, 6, 0, tir.BlockRealize([i, k], True, block)))
    return tir.PrimFunc([a, b], body)


def test_initialisation_is_guarded_by_the_reduction_axes(apply, agree, nodes_of):
    """``init`` becomes a branch on the reduction axis, and the block has no ``init`` afterwards."""
    before = row_sum()
    after = apply(before, LowerInitBlock())
    (block,) = nodes_of(after.body, tir.Block)
    assert block.init is None
    first = block.body[0]
    assert isinstance(first, tir.IfThenElse) and repr(first.condition) == "vk == 0"
    data = np.random.default_rng(0).integers(0, 9, (4, 6)).astype("int32")
    result = agree(before, after, data, np.zeros(4, "int32"))[1]
    np.testing.assert_array_equal(result, data.sum(axis=1))


def test_block_without_reduction_initialises_always():
    """Without reduction axes the initialisation simply comes first."""
    b = tir.decl_buffer((4,), "int32", "B")
    block = tir.Block([], [], [], "b", tir.BufferStore(b, 2, [0]), init=tir.BufferStore(b, 1, [0]))
    made = lower_init_block(tir.BlockRealize([], True, block))
    assert [store.value.value for store in made.block.body.seq] == [1, 2]


def test_block_without_initialisation_is_the_same_object():
    """Nothing to do gives the very same statement."""
    b = tir.decl_buffer((4,), "int32", "B")
    stmt = tir.BlockRealize([], True, tir.Block([], [], [], "b", tir.BufferStore(b, 2, [0])))
    assert lower_init_block(stmt) is stmt
