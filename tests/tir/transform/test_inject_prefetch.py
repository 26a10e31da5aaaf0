"""Prefetch attributes become hints for a later iteration's box."""

import pytest

from tilewright import tir
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.inject_prefetch import inject_prefetch

A, B = tir.decl_buffer((8, 64), "float32", "A"), tir.decl_buffer((8, 64), "float32", "B")
I, J = tir.Var("i", "int32"), tir.Var("j", "int32")


def row(kind=0):
    """for j: B[i, j] = A[i, j]"""
    return tir.For(J, 0, 64, kind, tir.BufferStore(B, A[I, J], [I, J]))


def test_box_of_a_later_iteration():
    """Two iterations ahead the row i + 2 is prefetched, before the row i is used."""
    stmt = tir.For(I, 0, 8, 0, tir.AttrStmt(A, "prefetch_scope", 2, row()))
    prefetch, rest = inject_prefetch(stmt).body.seq
    assert isinstance(prefetch, tir.Prefetch) and prefetch.buffer is A
    first, second = prefetch.bounds
    assert repr(first.min) == "i + 2" and first.extent.value == 1
    assert second.min.value == 0 and second.extent.value == 64
    assert isinstance(rest, tir.For)


def test_vectorized_loop_around_counts_as_a_whole():
    """Inside a vectorized loop the whole vector is prefetched."""
    body = tir.AttrStmt(A, "prefetch_scope", 1, tir.BufferStore(B, A[I, J], [I, J]))
    stmt = tir.For(J, 0, 16, tir.ForKind.VECTORIZED, tir.For(I, 0, 8, 0, body))
    prefetch = inject_prefetch(stmt).body.body[0]
    assert prefetch.bounds[1].extent.value == 16 and repr(prefetch.bounds[0].min) == "i + 1"


def test_buffer_that_is_not_read():
    """If the body does not read the buffer, nothing is prefetched."""
    stmt = tir.For(I, 0, 8, 0, tir.AttrStmt(B, "prefetch_scope", 2, row()))
    assert isinstance(inject_prefetch(stmt).body, tir.For)


def test_outside_a_loop_is_an_error():
    """There is no later iteration outside every loop."""
    with pytest.raises(LoweringError, match="A is outside every loop"):
        inject_prefetch(tir.AttrStmt(A, "prefetch_scope", 2, row()))
    stmt = row()
    assert inject_prefetch(stmt) is stmt
