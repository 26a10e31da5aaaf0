"""A statement may write over what it reads only element by element, each element once."""

from tilewright import tir
from tilewright.tir.transform.lib.in_place import can_run_in_place

A, B = tir.Var("A", "handle"), tir.Var("B", "handle")
I, J, N = tir.Var("i", "int32"), tir.Var("j", "int32"), tir.SizeVar("n", "int32")


def step(index, value=None, extents=(4, 8)):
    """for i, for j: B[index] = value, by default A[index] + 1"""
    value = tir.Load("int32", A, index) + 1 if value is None else value
    return tir.For(I, 0, extents[0], 0, tir.For(J, 0, extents[1], 0, tir.Store(B, value, index)))


def test_strides_must_nest():
    """Different iterations must give different indices: the strides nest like digits."""
    assert can_run_in_place(step(I * 8 + J), B, A)
    assert can_run_in_place(step(J * 4 + I), B, A)
    assert not can_run_in_place(step(I * 4 + J), B, A)
    assert not can_run_in_place(step(I), B, A)
    assert not can_run_in_place(step(I * 8 + J // 2), B, A)


def test_unknown_extent_only_outermost():
    """A loop of unknown length may have the largest stride, no smaller one."""
    assert can_run_in_place(step(I * 8 + J, extents=(N, 8)), B, A)
    assert not can_run_in_place(step(I * 8 + J, extents=(4, N)), B, A)


def test_vectors():
    """Vectors of stride one count with their lanes."""
    assert can_run_in_place(
        step(tir.Ramp(I * 64 + J * 8, 1, 8), tir.Load("int32x8", A, tir.Ramp(I * 64 + J * 8, 1, 8))), B, A
    )
    assert not can_run_in_place(
        step(tir.Ramp(I * 32 + J * 4, 1, 8), tir.Load("int32x8", A, tir.Ramp(I * 32 + J * 4, 1, 8))), B, A
    )


def test_other_accesses_forbid_it():
    """Another element, another type, a second store, a read of the target or a use of a pointer forbid it."""
    index = I * 8 + J
    assert not can_run_in_place(step(index, tir.Load("int32", A, index + 1)), B, A)
    assert not can_run_in_place(step(index, tir.Cast("int32", tir.Load("int16", A, index))), B, A)
    assert not can_run_in_place(step(index, tir.Load("int32", A, index) + tir.Load("int32", B, 0)), B, A)
    assert not can_run_in_place(tir.SeqStmt([step(index), step(index)]), B, A)
    assert not can_run_in_place(
        tir.SeqStmt([step(index), tir.Evaluate(tir.call_extern("int32", "use", A))]), B, A
    )
