"""What is known of an index: its linear form, its powers of two, whether it is index arithmetic at all."""

from __future__ import annotations

import pytest

from tilewright.codegen.llvm.indices import (
    FACTOR_LIMIT,
    is_cheap,
    is_pure_index,
    linear_form,
    power_of_two_factor,
)
from tilewright.ir.expr import (
    Add,
    Broadcast,
    Cast,
    FloorDiv,
    FloorMod,
    IntImm,
    Load,
    Mul,
    Ramp,
    Select,
    Var,
    const_value,
)

I, J = Var("i"), Var("j")
POINTER = Var("p", "handle")


def imm(value: int) -> IntImm:
    """An int32 constant."""
    return IntImm("int32", value)


@pytest.mark.parametrize(
    ("index", "stride"),
    [
        (Ramp(I, imm(1), 8), 1),
        (Add(Ramp(I, imm(2), 8), Broadcast(J, 8)), 2),
        (Mul(Ramp(I, imm(1), 8), Broadcast(imm(3), 8)), 3),
        (Add(Ramp(I, imm(1), 8), Ramp(J, imm(-2), 8)), -1),
        (Broadcast(I, 8), 0),
    ],
)
def test_linear_forms(index, stride):
    """Sums of ramps and broadcasts, and their products with broadcasts, have one base and one stride."""
    form = linear_form(index)
    assert form is not None and const_value(form[1]) == stride


def test_what_is_not_linear():
    """A product of two ramps, or a loaded index, has no stride."""
    assert linear_form(Mul(Ramp(I, imm(1), 8), Ramp(I, imm(1), 8))) is None
    assert linear_form(Load("int32x8", POINTER, Ramp(I, imm(1), 8))) is None


@pytest.mark.parametrize(
    ("expr", "factor"),
    [
        (imm(0), FACTOR_LIMIT),
        (imm(48), 16),
        (imm(-8), 8),
        (I, 1),
        (J, 4),
        (Mul(I, imm(16)), 16),
        (Mul(J, imm(16)), 64),
        (Add(Mul(I, imm(16)), J), 4),
        (FloorDiv(Mul(I, imm(32)), imm(4)), 8),
        (FloorMod(Mul(I, imm(32)), imm(8)), 8),
        (Cast("int64", Mul(I, imm(8))), 8),
        (Select(I > 0, imm(8), imm(12)), 4),
        (Mul(imm(64), imm(64)), FACTOR_LIMIT),
    ],
)
def test_powers_of_two(expr, factor):
    """The power of two that surely divides the value, as far as it is of use; j is a multiple of 4."""
    assert power_of_two_factor(expr, {J: 4}) == factor


def test_shared_expressions_take_linear_time():
    """An expression that doubles a hundred times is looked at a hundred times, not 2**100 times."""
    total, vector = Add(I, I), Add(Ramp(I, imm(1), 4), Broadcast(I, 4))
    for _ in range(100):
        total, vector = Add(total, total), Add(vector, vector)
    assert power_of_two_factor(total, {I: 2}) == 2
    assert is_pure_index(total)
    assert linear_form(vector) is not None
    assert not is_cheap(total)


def test_data_is_not_index_arithmetic():
    """What was read from memory may wrap; variables and constants are assumed not to."""
    assert is_pure_index(Add(Mul(I, imm(4)), J))
    assert not is_pure_index(Add(Load("int32", POINTER, I), J))
    assert is_cheap(Add(I, J)) and not is_cheap(Load("int32", POINTER, I))
