"""The strongest effect in an expression."""

from tilewright import tir
from tilewright.tir.transform.lib.effects import is_droppable, is_pure, side_effect

A, I = tir.Var("A", "handle"), tir.Var("i", "int32")


def test_strongest_effect():
    """Arithmetic is pure, a load reads, an unknown call may write; annotations add nothing."""
    assert is_pure(tir.exp(tir.Cast("float32", I)) + 1.0) and is_pure(tir.op.likely(I < 3))
    load = tir.Load("int32", A, I)
    assert side_effect(load + 1) == tir.CallEffectKind.ReadState and is_droppable(load) and not is_pure(load)
    call = tir.call_extern("int32", "f", load)
    assert side_effect(call + I) == tir.CallEffectKind.UpdateState and not is_droppable(call)
