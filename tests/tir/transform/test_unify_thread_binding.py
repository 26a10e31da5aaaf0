"""Loops bound to one thread index share one variable."""

import pytest

from tilewright import tir
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.unify_thread_binding import unify_thread_binding

A = tir.decl_buffer((64,), "int32", "A")


def bound(tag, extent, body):
    """A loop bound to a thread index; ``body`` gets its variable."""
    variable = tir.Var(tag.replace(".", "_"), "int32")
    thread = tir.IterVar(None, tir.Var(tag, "int32"), tir.IterVar.ThreadIndex, tag)
    return tir.For(variable, 0, extent, tir.ForKind.THREAD_BINDING, body(variable), thread)


def test_sibling_loops_share_the_index(nodes_of):
    """Two loops over threadIdx.x below one block index become one loop around both bodies."""

    def kernel(block):
        return tir.SeqStmt(
            [
                bound("threadIdx.x", 8, lambda x: tir.BufferStore(A, 1, [block * 8 + x])),
                bound("threadIdx.x", 8, lambda x: tir.BufferStore(A, 2, [block * 8 + x])),
            ]
        )

    made = unify_thread_binding(bound("blockIdx.x", 4, kernel))
    loops = nodes_of(made, tir.For)
    assert [loop.thread_binding.thread_tag for loop in loops] == ["threadIdx.x", "blockIdx.x"]
    assert isinstance(made.body.body, tir.SeqStmt)
    indices = [nodes_of(store.indices[0], tir.Var) for store in made.body.body.seq]
    assert indices[0] == indices[1] and {variable.name for variable in indices[0]} == {
        "blockIdx.x",
        "threadIdx.x",
    }


def test_kernels_have_their_own_indices(nodes_of):
    """Two kernels one after the other do not share variables."""
    store = lambda x: tir.BufferStore(A, 1, [x])
    made = unify_thread_binding(
        tir.SeqStmt([bound("threadIdx.x", 8, store), bound("threadIdx.x", 16, store)])
    )
    first, second = made.seq
    assert first.loop_var is not second.loop_var and second.extent.value == 16


def test_different_extents_in_one_kernel_are_an_error():
    """Loops over one index in one kernel must have one extent."""

    def kernel(block):
        return tir.SeqStmt(
            [bound("threadIdx.x", extent, lambda x: tir.BufferStore(A, 1, [x])) for extent in (8, 16)]
        )

    with pytest.raises(LoweringError, match=r"threadIdx\.x have the extents 8 and 16"):
        unify_thread_binding(bound("blockIdx.x", 4, kernel))


def test_virtual_threads_and_plain_loops_stay():
    """A virtual thread is not unified; a program without thread bindings is the same object."""
    stmt = bound("vthread", 4, lambda x: tir.BufferStore(A, 1, [x]))
    assert unify_thread_binding(stmt) is stmt
    loop = tir.For(tir.Var("i", "int32"), 0, 4, 0, tir.BufferStore(A, 1, [0]))
    assert unify_thread_binding(loop) is loop
