"""Assertions disappear, their bodies stay."""

from tilewright import tir
from tilewright.tir.transform.skip_assert import SkipAssert, skip_assert


def test_assertions_disappear(apply):
    """Nested assertions leave the innermost body."""
    a, n = tir.Var("A", "handle"), tir.Var("n", "int32")
    store = tir.Store(a, 1, n)
    message = tir.StringImm("message")
    stmt = tir.AssertStmt(n > 0, message, tir.AssertStmt(n < 9, message, store))
    assert apply(tir.PrimFunc([a, n], stmt), SkipAssert()).body is store
    assert skip_assert(store) is store
