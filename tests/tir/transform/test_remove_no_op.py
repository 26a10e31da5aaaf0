"""Statements that do nothing disappear; effects stay."""

from tilewright import tir
from tilewright.tir.stmt import is_no_op
from tilewright.tir.transform.remove_no_op import RemoveNoOp, remove_no_op

I = tir.Var("i", "int32")
A = tir.Var("A", "handle")


def test_empty_loops_and_branches_disappear():
    """A loop, branch, binding, attribute or allocation around nothing is nothing."""
    nothing = tir.Evaluate(0)
    assert is_no_op(remove_no_op(tir.For(I, 0, 8, 0, nothing)))
    assert is_no_op(remove_no_op(tir.IfThenElse(I > 0, nothing, nothing)))
    assert is_no_op(remove_no_op(tir.LetStmt(I, 1, nothing)))
    assert is_no_op(remove_no_op(tir.AttrStmt(A, "pragma_x", 1, nothing)))
    assert is_no_op(remove_no_op(tir.Allocate(A, "float32", [4], True, nothing)))
    assert is_no_op(remove_no_op(tir.For(I, 0, 0, 0, tir.Store(A, 1, I))))


def test_pure_expressions_disappear_and_effects_stay():
    """An evaluated load is dropped; a call that may write stays, also out of the bounds of an empty loop."""
    assert is_no_op(remove_no_op(tir.Evaluate(tir.Load("int32", A, 0) + 1)))
    effect = tir.Evaluate(tir.call_extern("int32", "write", A))
    assert remove_no_op(effect) is effect
    kept = remove_no_op(tir.LetStmt(I, tir.call_extern("int32", "count"), tir.Evaluate(0)))
    assert isinstance(kept, tir.Evaluate) and kept.value.args[0].value == "count"


def test_sequences_are_laid_flat(apply):
    """No-ops leave a sequence; a sequence of one statement is that statement."""
    store = tir.Store(A, 1, 0)
    stmt = tir.SeqStmt([tir.Evaluate(0), tir.SeqStmt([store, tir.For(I, 0, 4, 0, tir.Evaluate(0))])])
    after = apply(tir.PrimFunc([A], stmt), RemoveNoOp())
    assert after.body is store


def test_empty_else_disappears():
    """A branch keeps the side that does something."""
    store = tir.Store(A, 1, 0)
    made = remove_no_op(tir.IfThenElse(I > 0, store, tir.Evaluate(0)))
    assert made.then_case is store and made.else_case is None


def test_debug_skip_region():
    """A region marked to be skipped disappears whatever it does."""
    assert is_no_op(remove_no_op(tir.AttrStmt(A, "pragma_debug_skip_region", 0, tir.Store(A, 1, 0))))


def test_assertion_over_nothing_stays():
    """An assertion may fail, so it is not nothing."""
    stmt = tir.AssertStmt(I > 0, tir.StringImm("message"), tir.Evaluate(0))
    assert remove_no_op(stmt) is stmt


def test_unchanged_program_is_the_same_object():
    """A program without no-ops comes back as it is."""
    stmt = tir.SeqStmt([tir.Store(A, 1, 0), tir.For(I, 0, 4, 0, tir.Store(A, 1, I))])
    assert remove_no_op(stmt) is stmt
