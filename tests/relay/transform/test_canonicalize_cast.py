"""Widening conversions that are shared are done by each user."""

from __future__ import annotations

from tests.relay.transform.checks import check, operators

from tilewright import relay
from tilewright.relay import transform

CAST = transform.CanonicalizeCast()


def test_each_user_converts() -> None:
    """Two elementwise users, two conversions; the program computes the same."""
    x = relay.var("x", shape=(4,), dtype="int8")
    wide = relay.cast(x, "int32")
    made = check(CAST, relay.Tuple([wide + relay.const(1), wide * relay.const(2)]))
    assert operators(made).count("cast") == 2


def test_each_user_dequantises() -> None:
    """Elementwise users and a global pool read bytes; what is widened for a convolution stays shared by nobody else."""
    x = relay.var("x", shape=(1, 4, 8, 8), dtype="uint8")
    shifted = relay.cast(relay.cast(x, "int32") - relay.const(3), "float32")
    real = shifted * relay.const(0.25)
    made = check(
        CAST, relay.Tuple([relay.nn.global_avg_pool2d(real), real + relay.const(1.0), relay.exp(real)])
    )
    assert [operators(made).count(name) for name in ("cast", "subtract", "multiply")] == [6, 3, 3]


def test_narrowing_stays_shared() -> None:
    """The narrow copy is the smaller one to read."""
    x = relay.var("x", shape=(4,), dtype="int32")
    narrow = relay.cast(x, "int8")
    made = check(CAST, relay.Tuple([narrow + relay.const(1, "int8"), narrow * relay.const(2, "int8")]))
    assert operators(made).count("cast") == 1


def test_a_single_user_is_left_alone() -> None:
    """There is nothing to copy."""
    x = relay.var("x", shape=(4,), dtype="int8")
    made = check(CAST, relay.cast(x, "int32") + relay.const(1))
    assert operators(made) == ["cast", "add"]


def test_a_long_chain() -> None:
    """10,000 operators in a row."""
    made = relay.var("x", shape=(4,), dtype="int8")
    for _ in range(3_333):
        wide = relay.cast(made, "int32")
        made = relay.cast(wide + wide, "int8")
    assert operators(check(CAST, made)).count("add") == 3_333
