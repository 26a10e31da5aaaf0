"""A Select whose branches are only safe under its condition becomes a branch."""

import numpy as np

from tilewright import tir
from tilewright.tir.transform.rewrite_unsafe_select import RewriteUnsafeSelect, rewrite_unsafe_select

A = tir.Var("A", "handle")
I, N = tir.Var("i", "int32"), tir.Var("n", "int32")


def rewritten(value):
    """The value after the pass."""
    return rewrite_unsafe_select(tir.Store(A, value, 0)).value


def test_load_and_division_are_guarded():
    """A load or an integer division in a branch makes it an if_then_else."""
    for value in (tir.Load("int32", A, I), tir.floordiv(I, N)):
        made = rewritten(tir.Select(I > 1, value, 0))
        assert isinstance(made, tir.Call) and made.op.name == "tir.if_then_else"


def test_safe_values_stay():
    """Arithmetic, and a division by a constant, are safe; so is what an inner if_then_else guards."""
    for value in (I * 2 + 1, tir.floordiv(I, 4), tir.if_then_else(I > 3, tir.Load("int32", A, I), 1)):
        select = tir.Select(I > 1, value, 0)
        assert rewritten(select) is select


def test_vector_conditions_stay():
    """A condition with lanes decides for each lane."""
    lanes = tir.Ramp(0, 1, 4)
    select = tir.Select(lanes > tir.Broadcast(1, 4), tir.Load("int32x4", A, lanes), tir.Broadcast(0, 4))
    assert rewritten(select) is select


def test_out_of_range_branch_is_not_evaluated(apply, agree):
    """After the pass a program that guards its reads by Select runs."""
    a, b, i = tir.Var("A", "handle"), tir.Var("B", "handle"), tir.Var("i", "int32")
    guarded = tir.Select(i < 2, tir.Load("int32", a, i), 9)
    function = tir.PrimFunc([a, b], tir.For(i, 0, 4, 0, tir.Store(b, guarded, i)))
    branch = tir.if_then_else(i < 2, tir.Load("int32", a, i), 9)
    expected = tir.PrimFunc([a, b], tir.For(i, 0, 4, 0, tir.Store(b, branch, i)))
    after = apply(function, RewriteUnsafeSelect())
    _, result = agree(expected, after, np.array([5, 6], "int32"), np.zeros(4, "int32"))
    np.testing.assert_array_equal(result, [5, 6, 9, 9])
