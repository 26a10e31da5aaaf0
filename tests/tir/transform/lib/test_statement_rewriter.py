"""Every loop, binding and allocation of a rewritten statement defines a variable of its own."""

from tilewright import tir
from tilewright.tir.analysis import verify_ssa
from tilewright.tir.transform.lib.statement_rewriter import with_one_definition

A, I = tir.Var("A", "handle"), tir.Var("i", "int32")


def test_repeated_definitions_get_new_variables():
    """A statement that stands twice gets new variables the second time, also where an attribute names one."""
    b = tir.Var("B", "handle")
    inner = tir.AttrStmt(b, "volatile_scope", 1, tir.Store(b, I, I))
    part = tir.For(I, 0, 4, 0, tir.Allocate(b, "int32", [8], True, inner))
    made = with_one_definition(tir.SeqStmt([part, part]))
    assert made.seq[0] is part
    other = made.seq[1]
    assert other.loop_var is not I and other.body.buffer_var is not b
    assert other.body.body.node is other.body.buffer_var and other.body.body.body.index is other.loop_var
    assert verify_ssa(tir.PrimFunc([A], made)) and not verify_ssa(
        tir.PrimFunc([A], tir.SeqStmt([part, part]))
    )


def test_single_definitions_stay():
    """A statement with one definition each is the same object."""
    stmt = tir.For(I, 0, 4, 0, tir.Store(A, I, I))
    assert with_one_definition(stmt) is stmt
