"""bfloat16 values held as bits round like the reference."""

import ml_dtypes
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tilewright import tir
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform.bf16_type_lowering import bf16_type_lowering, bfloat16_bits

B = tir.Var("B", "handle")


@given(st.floats(width=32))
def test_rounding_of_any_number(value):
    """Constants and stored values round like ml_dtypes does, NaN stays NaN, infinities stay."""
    expected = int(np.asarray([value], "float32").astype(ml_dtypes.bfloat16).view("uint16")[0])
    bits = bfloat16_bits(value)
    stored = np.zeros(1, "uint16")
    x = tir.Var("x", "float32")
    interpret(
        tir.PrimFunc([B, x], bf16_type_lowering(tir.Store(B, tir.Cast("bfloat16", x), 0))), stored, value
    )
    if value != value:
        assert bits & 0x7F80 == 0x7F80 and bits & 0x7F and stored[0] & 0x7F80 == 0x7F80 and stored[0] & 0x7F
    else:
        assert bits == expected and stored[0] == expected
