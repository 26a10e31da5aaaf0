"""Fast versions of exponentials."""

from __future__ import annotations

import pytest
from tests.relay.transform.checks import after, check, operators

import tilewright as tvm
from tilewright import relay
from tilewright.relay import transform


@pytest.mark.parametrize("name", ["exp", "tanh", "erf"])
def test_functions_of_float32(name: str) -> None:
    """Each has a fast version."""
    x = relay.var("x", shape=(4,))
    made = check(transform.FastMath(), getattr(relay, name)(x))
    assert operators(made) == [f"fast_{name}"]


def test_softmax_keeps_its_axis() -> None:
    """Attributes go along."""
    x = relay.var("x", shape=(4, 5))
    made = check(transform.FastMath(), relay.nn.softmax(x, axis=0))
    assert operators(made) == ["nn.fast_softmax"]
    assert made.body.attrs.axis == 0


def test_float64_stays_accurate() -> None:
    """There is no fast version of it."""
    x = relay.var("x", shape=(4,), dtype="float64")
    assert operators(after(transform.FastMath(), relay.exp(x))) == ["exp"]


def test_it_runs_at_level_four() -> None:
    """Accuracy is given up on request alone."""
    x = relay.var("x", shape=(4,))
    module = tvm.IRModule.from_expr(relay.exp(x))
    for level, expected in ((3, ["exp"]), (4, ["fast_exp"])):
        with tvm.transform.PassContext(opt_level=level):
            made = tvm.transform.Sequential([transform.FastMath()])(module)
        assert operators(made["main"]) == expected
