"""Allocations move to the innermost loop or block around their accesses."""

import numpy as np

from tilewright import tir
from tilewright.ir.expr import Range
from tilewright.script import tir as T
from tilewright.tir.transform.plan_buffer_allocation import PlanAndUpdateBufferAllocationLocation


def axis(name, extent):
    """A data-parallel block axis."""
    return tir.IterVar(Range(0, extent), tir.Var(name, "int32"), tir.IterVar.DataPar)


def two_steps():
    """for i: for j: B[i, j] = A[i, j] + 1; for j: C[i, j] = B[i, j] * 2, with B allocated at the root."""
    a, b, c = (tir.decl_buffer((4, 8), "int32", name) for name in "ABC")

    def step(target, value, name):
        j, vi, vj = tir.Var("j", "int32"), axis("vi", 4), axis("vj", 8)
        block = tir.Block(
            [vi, vj], [], [], name, tir.BufferStore(target, value(vi.var, vj.var), [vi.var, vj.var])
        )
        return tir.For(j, 0, 8, 0, tir.BlockRealize([i, j], True, block))

    i = tir.Var("i", "int32")
    steps = [
        step(b, lambda x, y: a[x, y] + 1, "B"),
        step(c, lambda x, y: b[x, y] * 2, "C"),
    ]
    root = tir.Block([], [], [], "root", tir.For(i, 0, 4, 0, tir.SeqStmt(steps)), alloc_buffers=[b])
    return tir.PrimFunc([a, c], tir.BlockRealize([], True, root)), b


def test_buffer_moves_into_the_loop(apply, agree, nodes_of):
    """A buffer used within one loop is allocated in a block inside that loop."""
    before, b = two_steps()
    after = apply(before, PlanAndUpdateBufferAllocationLocation())
    root = after.body.block
    assert root.alloc_buffers == ()
    inner = root.body.body
    assert isinstance(inner, tir.BlockRealize) and inner.block.alloc_buffers == (b,)
    agree(before, after, np.arange(32, dtype="int32").reshape(4, 8), np.zeros((4, 8), "int32"))


def test_program_without_allocations_is_the_same_object(apply):
    """Nothing to move gives the very same body."""
    b = tir.decl_buffer((4,), "int32", "B")
    function = tir.PrimFunc(
        [b], tir.BlockRealize([], True, tir.Block([], [], [], "b", tir.BufferStore(b, 1, [0])))
    )
    assert apply(function, PlanAndUpdateBufferAllocationLocation()).body is function.body


@T.prim_func
def shared_row(a: T.handle, c: T.handle) -> None:
    A = T.match_buffer(a, (4, 8), "int32")
    C = T.match_buffer(c, (4, 8), "int32")
    B = T.alloc_buffer((4, 8), "int32")
    for i in range(4):
        for j in range(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + 1
        for j in range(8):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = B[vi, vj] * 2


def test_the_new_block_says_what_it_accesses(apply, nodes_of):
    """A block that is made for an allocation reads and writes what the loops inside do; its own buffer is its own."""
    after = apply(shared_row, PlanAndUpdateBufferAllocationLocation())
    (made,) = [block for block in nodes_of(after.body, tir.Block) if block.alloc_buffers]
    (read,), (written,) = made.reads, made.writes
    assert (read.buffer.name, written.buffer.name) == ("A", "C")
    assert [str(one.extent) for one in read.region] == ["1", "8"]
