"""Roundings between float32 operations disappear."""

from tilewright import tir
from tilewright.tir.transform.bf16_cast_elimination import bf16_cast_elimination
from tilewright.tir.transform.bf16_promote import bf16_promote

A, B, I = tir.Var("A", "handle"), tir.Var("B", "handle"), tir.Var("i", "int32")


def load(buffer=A):
    """An element of a bfloat16 buffer."""
    return tir.Load("bfloat16", buffer, I)


def test_rounding_between_operations_disappears(nodes_of):
    """Of a chain of two sums only the last is rounded."""
    made = bf16_cast_elimination(bf16_promote(tir.Store(B, load() + load() + load(B), I)))
    assert [found.dtype for found in nodes_of(made, tir.Cast)].count("bfloat16") == 1
