"""Expressions are simplified by what is known at their place, and decided statements disappear."""

import numpy as np

from tilewright import tir
from tilewright.tir.op import likely
from tilewright.tir.stmt import is_no_op
from tilewright.tir.transform.simplify import Simplify, simplify

A, I, J, N = tir.Var("A", "handle"), tir.Var("i", "int32"), tir.Var("j", "int32"), tir.SizeVar("n", "int32")


def test_condition_decided_by_loop_bounds():
    """A guard that the loops imply disappears; one that they exclude takes its branch with it."""
    store = tir.Store(A, 1, I * 4 + J)
    guarded = tir.IfThenElse(likely(I * 4 + J < 32), store)
    stmt = tir.For(I, 0, 8, 0, tir.For(J, 0, 4, 0, guarded))
    assert isinstance(simplify(stmt).body.body, tir.Store)
    excluded = tir.For(I, 0, 8, 0, tir.IfThenElse(I > 8, store, tir.Evaluate(0)))
    assert is_no_op(simplify(excluded).body)


def test_condition_holds_in_its_branches():
    """A condition is known in its then branch, its opposite in its else branch."""
    inner = tir.IfThenElse(I < 5, tir.Store(A, 1, I), tir.Store(A, 2, I))
    stmt = simplify(tir.IfThenElse(I < 3, inner, inner))
    assert isinstance(stmt.then_case, tir.Store)
    assert isinstance(stmt.else_case, tir.IfThenElse)
    stmt = simplify(tir.IfThenElse(I < 8, tir.Evaluate(0), inner))
    assert stmt.else_case.value.value == 2


def test_indices_become_canonical():
    """A split and fused index is put together again."""
    stmt = tir.For(I, 0, 16, 0, tir.Store(A, 1, (I // 4) * 4 + I % 4))
    assert simplify(stmt).body.index is I


def test_ramps_get_their_base():
    """A broadcast plus a ramp is a ramp, with a simplified start."""
    index = tir.Broadcast(I * 4 + I * 4, 4) + tir.Ramp(0, 1, 4)
    made = simplify(tir.Store(A, tir.Broadcast(1, 4), index)).index
    assert isinstance(made, tir.Ramp) and repr(made) == "T.ramp(i * 8, 1, 4)"


def test_bindings_are_put_in_place():
    """A binding of a constant, a variable or an affine index goes; one of a load or a long expression stays."""
    store = tir.Store(A, J, J * 2)
    for value in (tir.const(3), I, I * 4 + 1):
        made = simplify(tir.LetStmt(J, value, store))
        assert isinstance(made, tir.Store)
    loaded = tir.LetStmt(J, tir.Load("int32", A, 0), store)
    assert simplify(loaded) is loaded


def test_loop_of_one_iteration_puts_its_index_in_place():
    """Inside a loop of one iteration the index is a constant, also when another loop uses the variable again."""
    once = tir.For(I, 2, 1, 0, tir.Store(A, I, I))
    often = tir.For(I, 0, 4, 0, tir.Store(A, I, I))
    first, second = simplify(tir.SeqStmt([once, often])).seq
    assert first.body.index.value == 2 and second.body.index is I


def test_empty_loops_and_useless_stores_disappear():
    """A loop without iterations, and a store of what is there already, are nothing."""
    assert is_no_op(simplify(tir.For(I, 0, N - N, 0, tir.Store(A, 1, I))))
    assert is_no_op(simplify(tir.Store(A, tir.Load("int32", A, I + 1), 1 + I)))


def test_assertions():
    """An assertion that holds disappears; another is known in its body."""
    message = tir.StringImm("message")
    stmt = tir.AssertStmt(N >= 0, message, tir.Store(A, 1, 0))
    assert isinstance(simplify(stmt), tir.Store)
    stmt = tir.AssertStmt(I > 3, message, tir.IfThenElse(I > 2, tir.Store(A, 1, 0)))
    assert isinstance(simplify(stmt).body, tir.Store)


def test_thread_extent_bounds_the_thread(nodes_of):
    """A thread index is known to be below its extent."""
    axis = tir.IterVar((0, 16), "threadIdx.x", 1, "threadIdx.x")
    stmt = tir.AttrStmt(axis, "thread_extent", 16, tir.IfThenElse(axis.var < 16, tir.Store(A, 1, axis.var)))
    assert isinstance(simplify(stmt).body, tir.Store)


def test_results_do_not_change(apply, agree):
    """A nest with divisions, conditions and bindings computes the same."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    n = tir.SizeVar("n", "int32")
    with builder.for_range(0, n, name="i") as i, builder.for_range(0, 6, name="j") as j:
        k = builder.let("k", i * 6 + j)
        with builder.if_scope(tir.all(k // 6 >= 0, k % 6 < 4)):
            a[k] = (k // 6) * 6 + k % 6 + tir.max(j, j - 1)
    before = tir.PrimFunc([a.asobject(), n], builder.get())
    after = apply(before, Simplify())
    agree(before, after, np.zeros(30, "int32"), 5)


def test_simplified_program_is_the_same_object():
    """What cannot be simplified comes back as it is."""
    stmt = tir.For(I, 0, N, 0, tir.IfThenElse(I * 3 < N, tir.Store(A, tir.Load("int32", A, I * 2) + 1, I)))
    once = simplify(stmt)
    assert simplify(once) is once
