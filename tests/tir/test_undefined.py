"""Variables that a statement uses and does not define."""

from tilewright import te, tir
from tilewright.tir.undefined import undefined_vars


def test_definitions_are_left_out():
    """Loops, lets, allocations and thread indices define; what is left comes in the order of use."""
    n, i, x, a = tir.Var("n"), tir.Var("i"), tir.Var("x"), tir.decl_buffer((4,), name="A").data
    scratch, axis = tir.decl_buffer((4,), name="T").data, te.thread_axis("threadIdx.x")
    body = tir.Store(a, tir.Load("float32", scratch, x), i + axis.var)
    body = tir.Allocate(scratch, "float32", [4], True, tir.LetStmt(x, n * 2, body))
    body = tir.AttrStmt(axis, "thread_extent", 8, tir.For(i, 0, n, 0, body))
    assert undefined_vars(body) == [n, a]
    assert undefined_vars(body, [a]) == [n]
