"""bfloat16 programs compute in float32 and store bits."""

import ml_dtypes
import numpy as np
import pytest

from tilewright import tir
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform.bf16_legalize import BF16Legalize
from tilewright.tir.transform.bf16_promote import BF16Promote
from tilewright.tir.transform.storage_flatten import StorageFlatten
from tilewright.tir.transform.vectorize_loop import VectorizeLoop

A, B, I = tir.Var("A", "handle"), tir.Var("B", "handle"), tir.Var("i", "int32")


def load(buffer=A):
    """An element of a bfloat16 buffer."""
    return tir.Load("bfloat16", buffer, I)


def bits_of(values):
    """The bits of numbers rounded to bfloat16."""
    return np.asarray(values, "float32").astype(ml_dtypes.bfloat16).view("uint16")


def test_no_bfloat16_is_left(apply, nodes_of):
    """After legalization every value, load, store and allocation has another type."""
    t = tir.Var("T", "handle")
    body = tir.SeqStmt(
        [tir.Store(t, load() * tir.const(2.5, "bfloat16"), 0), tir.Store(B, tir.Load("bfloat16", t, 0), I)]
    )
    function = tir.PrimFunc([A, B, I], tir.Allocate(t, "bfloat16", [4], True, body))
    after = apply(function, BF16Legalize())
    kinds = {
        str(found.dtype) for kind in (tir.PrimExpr, tir.Allocate) for found in nodes_of(after.body, kind)
    }
    assert "bfloat16" not in kinds and after.body.dtype == "uint16"


@pytest.mark.parametrize("kind", [tir.ForKind.SERIAL, tir.ForKind.VECTORIZED])
def test_values_are_those_of_float32_rounded_once(apply, kind):
    """``A * B + A`` equals the float32 result rounded to nearest even, in scalar and in vector code."""
    a, b, c = (tir.decl_buffer((8,), "bfloat16", name) for name in "ABC")
    i = tir.Var("i", "int32")
    body = tir.For(i, 0, 8, kind, tir.BufferStore(c, a[i] * b[i] + a[i], [i]))
    after = apply(
        tir.PrimFunc([a, b, c], body), StorageFlatten(64, handwritten=True), BF16Legalize(), VectorizeLoop()
    )
    rng = np.random.default_rng(0)
    x = rng.standard_normal(8).astype(ml_dtypes.bfloat16)
    y = rng.standard_normal(8).astype(ml_dtypes.bfloat16)
    result = np.zeros(8, "uint16")
    interpret(after, x.view("uint16"), y.view("uint16"), result)
    expected = x.astype("float32") * y.astype("float32") + x.astype("float32")
    np.testing.assert_array_equal(result, bits_of(expected))


def test_program_without_bfloat16_is_the_same_object(apply):
    """Nothing to do gives the very same body."""
    function = tir.PrimFunc([A], tir.Store(A, tir.Load("float32", A, 0) + 1.0, 0))
    assert apply(function, BF16Legalize()).body is function.body
    assert apply(function, BF16Promote()).body is function.body
