"""bfloat16 arithmetic is made in float32."""

from tilewright import tir
from tilewright.tir.transform.bf16_promote import bf16_promote

A, B, I = tir.Var("A", "handle"), tir.Var("B", "handle"), tir.Var("i", "int32")


def load(buffer=A):
    """An element of a bfloat16 buffer."""
    return tir.Load("bfloat16", buffer, I)


def test_arithmetic_is_promoted():
    """A sum of bfloat16 is a rounded sum of float32; a comparison and a math function are made in float32."""
    made = bf16_promote(tir.Store(B, load() + load(), I)).value
    assert isinstance(made, tir.Cast) and made.dtype == "bfloat16" and made.value.dtype == "float32"
    assert bf16_promote(tir.Evaluate(load() < load())).value.a.dtype == "float32"
    call = bf16_promote(tir.Evaluate(tir.exp(load()))).value
    assert call.dtype == "bfloat16" and call.value.dtype == "float32"
