"""Intrinsics go through rules, and divisions that round down become what processors have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright import tir
from tilewright.ir.op import Op, register_intrin_lowering
from tilewright.target import Target
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform.lower_intrin import LowerIntrin, lower_intrinsics


def written(expr, params, dtype="int32"):
    """A function that stores an expression of its parameters."""
    out = tir.decl_buffer((1,), dtype, name="out")
    return tir.PrimFunc([*params, out], tir.Store(out.data, expr, 0))


def value_of(function, *arguments, dtype="int32"):
    out = np.zeros(1, dtype)
    interpret(function, *arguments, out)
    return out[0]


@given(st.integers(-(2**31), 2**31 - 1), st.integers(-1000, 1000).filter(bool))
def test_division_by_constants(a, b):
    """Quotient and remainder are Python's, for every sign and for powers of two."""
    x = tir.Var("x")
    for expr, expected in ((tir.floordiv(x, b), a // b), (tir.floormod(x, b), a % b)):
        if not -(2**31) <= expected < 2**31:
            continue
        assert value_of(lower_intrinsics(written(expr, [x]), "llvm"), a) == expected


@given(st.integers(-(10**9), 10**9), st.integers(-100, 100).filter(bool))
def test_division_by_variables(a, b):
    """The same where the divisor is known only at run time."""
    x, y = tir.Var("x"), tir.Var("y")
    assert value_of(lower_intrinsics(written(tir.floordiv(x, y), [x, y]), "llvm"), a, b) == a // b
    assert value_of(lower_intrinsics(written(tir.floormod(x, y), [x, y]), "llvm"), a, b) == a % b


def test_what_is_not_negative_truncates(nodes_of):
    """Inside a loop from zero no correction is needed; a power of two needs no division at all."""
    out, i, x = tir.decl_buffer((64,), "int32", name="out"), tir.Var("i"), tir.Var("x")
    for expr, expected in (
        (i // 7, [tir.Div]),
        (i % 7, [tir.Mod]),
        (i // 8, [tir.Div]),
        (x // 8, [tir.Call]),
        (x % 8, [tir.Call]),
    ):
        body = tir.For(i, 0, 64, 0, tir.Store(out.data, expr, i))
        made = lower_intrinsics(tir.PrimFunc([x, out], body), "llvm")
        found = nodes_of(made.body, tir.Store)[0].value
        assert [type(found)] == expected
        assert not nodes_of(made.body, (tir.FloorDiv, tir.FloorMod, tir.Select))


def test_unsigned_and_vectors(nodes_of):
    """Unsigned numbers are never negative; vectors are divided lane by lane."""
    x = tir.Var("x", "uint32")
    assert (
        value_of(
            lower_intrinsics(written(x // tir.const(3, "uint32"), [x], "uint32"), "c"), 7, dtype="uint32"
        )
        == 2
    )
    out, y = tir.decl_buffer((4,), "int32", name="out"), tir.Var("y")
    index = tir.Ramp(0, 1, 4)
    body = tir.Store(out.data, tir.floordiv(tir.Ramp(y, 1, 4), tir.Broadcast(3, 4)), index)
    made = lower_intrinsics(tir.PrimFunc([y, out], body), "c")
    result = np.zeros(4, "int32")
    interpret(made, -2, result)
    np.testing.assert_array_equal(result, [-1, -1, 0, 0])


@pytest.fixture
def rules():
    """Two operators with rules; forgotten afterwards."""
    op = Op.register("tir.test_rule")
    register_intrin_lowering("tir.test_rule", "default", f=lambda call: call.args[0] + 1)
    register_intrin_lowering("tir.test_rule", "cuda", f=lambda call: call.args[0] + 2)
    register_intrin_lowering("tir.test_rule", "c", f=lambda call: None)
    yield op
    for target in ("default", "cuda", "c"):
        op.reset_attr(f"{target}.FLowerIntrinsic")


def test_rules_by_target(apply, rules):
    """The target's rule wins over the default, and may keep the call."""
    x = tir.Var("x")
    function = written(tir.Call("int32", rules, [x]), [x])
    assert value_of(apply(function.with_attr("target", Target("llvm")), LowerIntrin()), 5) == 6
    assert value_of(apply(function.with_attr("target", Target("cuda")), LowerIntrin()), 5) == 7
    kept = apply(function.with_attr("target", Target("c")), LowerIntrin())
    assert kept.body is function.body


@given(
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-(2**31), 2**31 - 1),
    st.integers(-8, 8),
)
def test_fixed_point_multiplication(x, y, s):
    """x * y * 2**(s - 31), rounded half up, where it fits."""
    expected = ((x << max(s, 0)) * y + (1 << (30 + max(-s, 0)))) >> (31 + max(-s, 0))
    if not -(2**31) <= expected < 2**31 or abs((x << max(s, 0)) * y) >= 2**62:
        return
    a, b, shift = tir.Var("a"), tir.Var("b"), tir.Var("shift")
    constant = lower_intrinsics(written(tir.q_multiply_shift(a, b, 31, s), [a, b]), "llvm")
    assert value_of(constant, x, y) == expected
    symbolic = lower_intrinsics(written(tir.q_multiply_shift(a, b, 31, shift), [a, b, shift]), "llvm")
    assert value_of(symbolic, x, y, s) == expected


def test_a_divisor_that_is_the_constant_zero_counts_as_one():
    """As it does where the divisor is only known at run time."""
    x, zero = tir.Var("x"), tir.IntImm("int32", 0)
    assert value_of(lower_intrinsics(written(tir.FloorDiv(x, zero), [x]), "llvm"), -7) == -7
    assert value_of(lower_intrinsics(written(tir.FloorMod(x, zero), [x]), "llvm"), -7) == 0
