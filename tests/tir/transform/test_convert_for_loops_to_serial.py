"""Parallel loops become serial, other loops stay."""

from tilewright import tir
from tilewright.tir.transform.convert_for_loops_to_serial import (
    ConvertForLoopsToSerial,
    convert_for_loops_to_serial,
)


def test_parallel_becomes_serial(apply):
    """Only loops of kind PARALLEL change, also inside others."""
    a, i, j = tir.Var("A", "handle"), tir.Var("i", "int32"), tir.Var("j", "int32")
    inner = tir.For(j, 0, 4, tir.ForKind.PARALLEL, tir.Store(a, 1, i * 4 + j))
    stmt = tir.For(i, 0, 4, tir.ForKind.UNROLLED, inner)
    after = apply(tir.PrimFunc([a], stmt), ConvertForLoopsToSerial()).body
    assert after.kind == tir.ForKind.UNROLLED and after.body.kind == tir.ForKind.SERIAL
    assert convert_for_loops_to_serial(after) is after
