"""Accesses outside a buffer fail with a message that names the buffer and the index."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform.instrument_bound_checkers import (
    InstrumentBoundCheckers,
    instrument_bound_checkers,
)
from tilewright.tir.transform.storage_flatten import StorageFlatten
from tilewright.tir.transform.vectorize_loop import VectorizeLoop


def shifted_copy(shift, kind="serial", guard=False):
    """for i in 8: B[i] = A[i + shift], A of 8 elements"""
    a, b = tir.decl_buffer((8,), "int32", "A"), tir.decl_buffer((8,), "int32", "B")
    i = tir.Var("i", "int32")
    value = a[i + shift]
    if guard:
        value = tir.if_then_else(i + shift < 8, value, 0)
    body = tir.For(i, 0, 8, {"serial": 0, "vectorize": 2}[kind], tir.BufferStore(b, value, [i]))
    return tir.PrimFunc([a, b], body)


def instrumented(apply, function):
    """The function flattened, vectorized and instrumented."""
    return apply(function, StorageFlatten(64, True, True), VectorizeLoop(), InstrumentBoundCheckers())


@pytest.mark.parametrize("kind", ["serial", "vectorize"])
def test_access_in_range_passes(apply, agree, kind):
    """A program that stays in bounds computes what it did."""
    before = shifted_copy(0, kind)
    agree(before, instrumented(apply, before), np.arange(8, dtype="int32"), np.zeros(8, "int32"))


@pytest.mark.parametrize(
    ("shift", "kind", "wrong"), [(1, "serial", 8), (-1, "serial", -1), (3, "vectorize", 10)]
)
def test_access_out_of_range_fails(apply, shift, kind, wrong):
    """A read past either end fails before it happens; the message names the buffer."""
    after = instrumented(apply, shifted_copy(shift, kind))
    with pytest.raises(TilewrightError, match=f"buffer A has 8 elements, index {wrong} was accessed"):
        interpret(after, np.arange(8, dtype="int32"), np.zeros(8, "int32"))


def test_guarded_read_is_checked_where_it_happens(apply, agree):
    """A read that its own condition keeps in bounds does not fail."""
    before = shifted_copy(3, guard=True)
    result = agree(before, instrumented(apply, before), np.arange(8, dtype="int32"), np.zeros(8, "int32"))[1]
    np.testing.assert_array_equal(result, [3, 4, 5, 6, 7, 0, 0, 0])


def test_store_is_checked(apply):
    """A write is checked like a read."""
    b = tir.decl_buffer((4,), "int32", "B")
    n = tir.Var("n", "int32")
    handle = tir.Var("handle", "handle")
    function = tir.PrimFunc([handle, n], tir.BufferStore(b, 1, [n]), buffer_map={handle: b})
    after = apply(function, StorageFlatten(64, True, True), InstrumentBoundCheckers())
    interpret(after, np.zeros(4, "int32"), 3)
    with pytest.raises(TilewrightError, match="buffer B has 4 elements, index 4"):
        interpret(after, np.zeros(4, "int32"), 4)


def test_without_sizes_nothing_is_checked():
    """A program without ``buffer_bound`` comes back as it is."""
    a = tir.Var("A", "handle")
    stmt = tir.Store(a, 1, 0)
    assert instrument_bound_checkers(stmt) is stmt
