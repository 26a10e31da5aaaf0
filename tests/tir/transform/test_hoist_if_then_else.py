"""Conditions move out of loops that do not change them."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.hoist_if_then_else import HoistIfThenElse, hoist_if_then_else

A, N = tir.Var("A", "handle"), tir.Var("n", "int32")


def nest(condition, otherwise=None):
    """for i in 4: for j in 4: if condition(i, j): A[i * 4 + j] = 1"""
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    else_case = None if otherwise is None else tir.Store(A, otherwise, i * 4 + j)
    body = tir.IfThenElse(condition(i, j), tir.Store(A, 1, i * 4 + j), else_case)
    return tir.PrimFunc([A, N], tir.For(i, 0, 4, 0, tir.For(j, 0, 4, 0, body)))


def test_moves_to_the_loop_it_depends_on(apply, agree):
    """A condition on the outer loop stands between the loops, one on neither outside."""
    before = nest(lambda i, j: i < N)
    after = apply(before, HoistIfThenElse())
    assert isinstance(after.body.body, tir.IfThenElse)
    agree(before, after, np.zeros(16, "int32"), 2)
    assert isinstance(apply(nest(lambda i, j: N > 3), HoistIfThenElse()).body, tir.IfThenElse)
    inner = nest(lambda i, j: j < N)
    assert apply(inner, HoistIfThenElse()).body is inner.body


def test_parts_of_a_conjunction(apply, agree):
    """Each part of a conjunction moves as far as it can."""
    before = nest(lambda i, j: tir.all(i < N, j < N, N > 1))
    after = apply(before, HoistIfThenElse())
    assert isinstance(after.body, tir.IfThenElse)
    assert isinstance(after.body.then_case.body, tir.IfThenElse)
    for n in (0, 1, 3):
        agree(before, after, np.zeros(16, "int32"), n)


def test_else_branch_gets_its_own_loop(apply, agree, nodes_of):
    """With an else branch both sides get the loop, each with its own variable."""
    before = nest(lambda i, j: N > 1, otherwise=7)
    after = apply(before, HoistIfThenElse())
    loops = nodes_of(after.body, tir.For)
    assert len(loops) == 4 and len({id(loop.loop_var) for loop in loops}) == 4
    for n in (0, 3):
        agree(before, after, np.zeros(16, "int32"), n)


def test_conditions_on_memory_stay(apply):
    """A condition that reads memory may be changed by the loop."""
    before = nest(lambda i, j: tir.Load("int32", A, 0) > 0)
    assert apply(before, HoistIfThenElse()).body is before.body


def test_thread_indices_only_where_asked(apply):
    """A condition passes a thread index only with the option, and never in the basic variant."""
    axis = tir.IterVar((0, 8), "threadIdx.x", 1, "threadIdx.x")
    branch = tir.IfThenElse(N > 3, tir.Store(A, 1, axis.var))
    loop = tir.For(tir.Var("i", "int32"), 0, 4, 0, tir.AttrStmt(axis, "thread_extent", 8, branch))
    function = tir.PrimFunc([A, N], loop)
    assert apply(function, HoistIfThenElse()).body is function.body
    with PassContext(config={"tir.HoistIfThenElse": {"support_block_scope_hosting": True}}):
        assert isinstance(apply(function, HoistIfThenElse()).body, tir.IfThenElse)
        assert apply(function, HoistIfThenElse("basic")).body is function.body
        with pytest.raises(LoweringError, match="variants"):
            apply(function, HoistIfThenElse("other"))


def test_conditions_on_thread_indices(apply):
    """A condition on a thread index leaves the loops inside it in the basic variant, and with the option."""
    axis = tir.IterVar((0, 8), "threadIdx.x", 1, "threadIdx.x")
    branch = tir.IfThenElse(axis.var < N, tir.Store(A, 1, axis.var))
    loop = tir.For(tir.Var("i", "int32"), 0, 4, 0, branch)
    function = tir.PrimFunc([A, N], tir.AttrStmt(axis, "thread_extent", 8, loop))
    assert apply(function, HoistIfThenElse()).body is function.body
    assert isinstance(apply(function, HoistIfThenElse("basic")).body.body, tir.IfThenElse)
    with PassContext(config={"tir.HoistIfThenElse": {"support_block_scope_hosting": True}}):
        assert isinstance(apply(function, HoistIfThenElse()).body.body, tir.IfThenElse)


def test_conditions_within_conditions(apply):
    """What is left in the loop after a condition has moved may be one that moves as well."""
    i, j = tir.Var("i", "int32"), tir.Var("j", "int32")
    branch = tir.IfThenElse(N > 3, tir.IfThenElse(i < N, tir.Store(A, 1, i * 4 + j)))
    function = tir.PrimFunc([A, N], tir.For(i, 0, 4, 0, tir.For(j, 0, 4, 0, branch)))
    outer = apply(function, HoistIfThenElse()).body
    assert isinstance(outer, tir.IfThenElse) and isinstance(outer.then_case.body, tir.IfThenElse)


def test_program_without_conditions_is_the_same_object():
    """Nothing to do gives the very same statement."""
    stmt = tir.For(tir.Var("i", "int32"), 0, 4, 0, tir.Store(A, 1, 0))
    assert hoist_if_then_else(stmt) is stmt
