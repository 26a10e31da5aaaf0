"""Divisions by constants that become multiplications."""

from __future__ import annotations

import numpy as np
import pytest
from tests.relay.transform.checks import after, check, operators

import tilewright as tvm
from tilewright import relay
from tilewright.relay import transform

PASS = transform.MultiplyByReciprocal()


def test_the_constant_is_the_rounded_reciprocal() -> None:
    """GELU's division by the root of two is a product with the float32 nearest to one over it."""
    x = relay.var("x", shape=(4,))
    root = np.float32(2**0.5)
    made = check(PASS, relay.divide(x, relay.const(root)))
    assert operators(made) == ["multiply"]
    assert made.body.args[1].data.numpy() == np.float32(1) / root


def test_a_constant_tensor() -> None:
    """Every element has its reciprocal."""
    x = relay.var("x", shape=(2, 3))
    made = check(PASS, relay.divide(x, relay.const(np.array([3, -7, 0.3], np.float32))))
    assert operators(made) == ["multiply"]


@pytest.mark.parametrize("divisor", [0.0, np.inf, np.nan, 1e-40, 2e38])
def test_reciprocals_out_of_range_stay(divisor: float) -> None:
    """Where the reciprocal, or the divisor, has fewer digits than a normal number the division stays."""
    x = relay.var("x", shape=(4,))
    assert operators(after(PASS, relay.divide(x, relay.const(np.float32(divisor))))) == ["divide"]


def test_other_divisions_stay() -> None:
    """Of integers, of a constant by a variable, and of two variables."""
    x, y, n = (
        relay.var("x", shape=(4,)),
        relay.var("y", shape=(4,)),
        relay.var("n", shape=(4,), dtype="int32"),
    )
    for division in (relay.divide(n, relay.const(3)), relay.divide(relay.const(3.0), x), relay.divide(x, y)):
        assert operators(after(PASS, division)) == ["divide"]


def test_the_error_is_one_and_a_half_units_at_most() -> None:
    """Over many numbers and divisors, against the exact quotient."""
    rng = np.random.default_rng(0)
    x, divisors = rng.uniform(1, 2, (500, 200)).astype("float32"), rng.uniform(1, 2, 200).astype("float32")
    variable = relay.var("x", shape=x.shape)
    module = tvm.IRModule.from_expr(relay.divide(variable, relay.const(divisors)))
    with tvm.transform.PassContext(opt_level=3):
        got = relay.create_executor("graph", module, tvm.cpu(), "llvm").evaluate()(x).numpy()
    exact = x.astype("float64") / divisors
    worst = np.max(np.abs(got - exact) / np.spacing(exact.astype("float32")))
    assert 0.5 < worst <= 1.5


def test_it_runs_at_level_three() -> None:
    """Below, quotients are rounded once."""
    module = tvm.IRModule.from_expr(relay.divide(relay.var("x", shape=(4,)), relay.const(3.0)))
    for level, expected in ((2, ["divide"]), (3, ["multiply"])):
        with tvm.transform.PassContext(opt_level=level):
            made = tvm.transform.Sequential([PASS])(module)
        assert operators(made["main"]) == expected
