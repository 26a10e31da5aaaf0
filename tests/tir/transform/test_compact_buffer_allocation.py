"""Allocated buffers shrink to the box that is accessed."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.ir.expr import Range
from tilewright.tir.transform.compact_buffer_allocation import CompactBufferAllocation


def in_loop(alloc, body, extent=8, predicate=True):
    """for i: block that allocates and runs ``body(i)``"""
    i = tir.Var("i", "int32")
    block = tir.Block([], [], [], "b", body(i), alloc_buffers=[alloc])
    return tir.For(i, 0, extent, 0, tir.BlockRealize([], predicate, block))


def loop(extent, body):
    """A loop around ``body(j)``."""
    j = tir.Var("j", "int32")
    return tir.For(j, 0, extent, 0, body(j))


def test_row_of_a_matrix(apply, agree, nodes_of):
    """A buffer of which each iteration uses one row keeps one row."""
    a, b, c = (tir.decl_buffer((8, 16), "int32", name) for name in "ABC")

    def body(i):
        return tir.SeqStmt(
            [
                loop(16, lambda j: tir.BufferStore(b, a[i, j] + 1, [i, j])),
                loop(16, lambda j: tir.BufferStore(c, b[i, 15 - j], [i, j])),
            ]
        )

    before = tir.PrimFunc([a, c], in_loop(b, body))
    after = apply(before, CompactBufferAllocation())
    (block,) = nodes_of(after.body, tir.Block)
    assert [extent.value for extent in block.alloc_buffers[0].shape] == [1, 16]
    agree(before, after, np.arange(128, dtype="int32").reshape(8, 16), np.zeros((8, 16), "int32"))


def test_window_with_overlap(apply, agree, nodes_of):
    """The joined box of several accesses: a tile of four with two more on its right."""
    a, b, c = (
        tir.decl_buffer((34,), "int32", "A"),
        tir.decl_buffer((34,), "int32", "B"),
        tir.decl_buffer((32,), "int32", "C"),
    )

    def body(i):
        return tir.SeqStmt(
            [
                loop(6, lambda j: tir.BufferStore(b, a[i * 4 + j] * 2, [i * 4 + j])),
                loop(4, lambda j: tir.BufferStore(c, b[i * 4 + j] + b[i * 4 + j + 2], [i * 4 + j])),
            ]
        )

    before = tir.PrimFunc([a, c], in_loop(b, body))
    after = apply(before, CompactBufferAllocation())
    (block,) = nodes_of(after.body, tir.Block)
    assert [extent.value for extent in block.alloc_buffers[0].shape] == [6]
    agree(before, after, np.arange(34, dtype="int32"), np.zeros(32, "int32"))


def test_buffer_whose_pointer_is_used_stays(apply):
    """A buffer that opaque code reaches through its pointer keeps its shape."""
    b = tir.decl_buffer((16,), "int32", "B")

    def body(i):
        return tir.SeqStmt(
            [tir.BufferStore(b, 1, [i]), tir.Evaluate(tir.call_extern("int32", "use", b.data))]
        )

    before = tir.PrimFunc([], in_loop(b, body))
    assert apply(before, CompactBufferAllocation()).body is before.body


def test_alignment_annotation(apply, nodes_of):
    """``buffer_dim_align`` of the writing block gives the compacted buffer padded strides."""
    b, c = tir.decl_buffer((8, 16), "int32", "B"), tir.decl_buffer((8, 16), "int32", "C")
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    region = tir.BufferRegion(b, (Range.from_min_extent(i, 1), Range.from_min_extent(j, 1)))
    fill = tir.Block(
        [],
        [],
        [region],
        "fill",
        tir.BufferStore(b, i, [i, j]),
        annotations={"buffer_dim_align": [[0, 0, 32, 8]]},
    )
    loops = tir.For(i, 0, 8, 0, tir.For(j, 0, 16, 0, tir.BlockRealize([], True, fill)))
    root = tir.Block(
        [], [], [], "root", tir.SeqStmt([loops, tir.BufferStore(c, b[0, 0], [0, 0])]), alloc_buffers=[b]
    )
    after = apply(tir.PrimFunc([c], tir.BlockRealize([], True, root)), CompactBufferAllocation())
    made = after.body.block.alloc_buffers[0]
    assert [stride.value for stride in made.strides] == [40, 1]


@pytest.mark.parametrize(("scope", "shape"), [("local", [1]), ("shared", [8])])
def test_memory_that_threads_share(apply, nodes_of, scope, shape):
    """What is allocated inside a loop over threads holds the elements of all of them if they share it."""
    a, b = tir.decl_buffer((8,), "int32", "A"), tir.decl_buffer((8,), "int32", "B", scope=scope)
    i = tir.Var("i", "int32")
    body = tir.SeqStmt([tir.BufferStore(b, a[i], [i]), tir.BufferStore(a, b[i] + 1, [i])])
    block = tir.Block([], [], [], "b", body, alloc_buffers=[b])
    thread = tir.IterVar(Range(0, 8), tir.Var("threadIdx.x", "int32"), tir.IterVar.ThreadIndex, "threadIdx.x")
    kernel = tir.For(i, 0, 8, tir.ForKind.THREAD_BINDING, tir.BlockRealize([], True, block), thread)
    after = apply(tir.PrimFunc([a], kernel), CompactBufferAllocation())
    (made,) = nodes_of(after.body, tir.Block)
    assert [extent.value for extent in made.alloc_buffers[0].shape] == shape


def realized(body, alloc=(), reads=(), writes=(), predicate=True):
    """A block without axes around a statement."""
    return tir.BlockRealize([], predicate, tir.Block([], reads, writes, "b", body, alloc_buffers=alloc))


def shape_after(apply, nodes_of, function, name):
    """The shape of an allocated buffer after the pass."""
    after = apply(function, CompactBufferAllocation())
    buffers = [one for block in nodes_of(after.body, tir.Block) for one in block.alloc_buffers]
    (found,) = [one for one in buffers if one.name == name]
    return [extent.value for extent in found.shape], after


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        (lambda i: i < 5, (5, 3)),
        (lambda i: tir.all(i >= 3, i * 2 < 13), (4, 8)),
        (lambda i: tir.any(i < 2, i >= 6), (8, 4)),
        (lambda i: tir.Not(i > 2), (3, 5)),
        (lambda i: i * i < 9, (8, 8)),
    ],
)
def test_conditions_narrow_both_branches(apply, agree, nodes_of, condition, kept):
    """Each branch keeps the elements for which its condition can hold; what is not linear narrows nothing."""
    a = tir.decl_buffer((8,), "int32", "A")
    b, c = (tir.decl_buffer((8,), "int32", name) for name in "BC")
    i = tir.Var("i", "int32")
    then_case = tir.SeqStmt([tir.BufferStore(b, i, [i]), tir.BufferStore(a, b[i] + 1, [i])])
    else_case = tir.SeqStmt([tir.BufferStore(c, i, [i]), tir.BufferStore(a, c[i] * 2, [i])])
    loop_ = tir.For(i, 0, 8, 0, tir.IfThenElse(condition(i), then_case, else_case))
    before = tir.PrimFunc([a], realized(loop_, [b, c]))
    for name, extent in zip("BC", kept, strict=True):
        shape, after = shape_after(apply, nodes_of, before, name)
        assert shape == [extent]
    agree(before, after, np.zeros(8, "int32"))


def test_pointers_reach_the_declared_region(apply, nodes_of):
    """A block that says what it writes through a pointer bounds the buffer; one that says nothing may reach it all."""
    a = tir.decl_buffer((64,), "int32", "A")
    i = tir.Var("i", "int32")
    for declared, extent in (([tir.BufferRegion(a, [Range.from_min_extent(i, 3)])], 18), ([], 64)):
        inner = realized(tir.Store(a.data, i, i), writes=declared)
        function = tir.PrimFunc([], realized(tir.For(i, 0, 16, 0, inner), [a]))
        assert shape_after(apply, nodes_of, function, "A")[0] == [extent]
