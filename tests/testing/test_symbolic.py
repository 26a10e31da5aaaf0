"""Checking facts about expressions."""

import pytest

from tilewright.arith.int_solver import IntConstraints, IntConstraintsTransform, solve_linear_equations
from tilewright.ir.expr import Range, Var
from tilewright.support.errors import ExpressionError
from tilewright.testing import (
    assert_prim_expr_equal,
    check_bool_expr_is_true,
    check_int_constraints_trans_consistency,
)

x, y = Var("x"), Var("y")


def test_equal_by_proof() -> None:
    """Expressions that are the same number are equal, others are not."""
    assert_prim_expr_equal((x + 1) * 2, x * 2 + 2)
    with pytest.raises(ValueError, match=r"x \+ 1 and x are not equal"):
        assert_prim_expr_equal(x + 1, x)


def test_true_for_every_value() -> None:
    """A condition is tried for every value; the first that breaks it is named."""
    ranges = {x: Range(-3, 4), y: (1, 5)}
    check_bool_expr_is_true(x // y * y + x % y == x, ranges)
    check_bool_expr_is_true(x < y, ranges, cond=x <= 0)
    with pytest.raises(AssertionError, match=r"does not hold for \{'x': 1, 'y': 1\}"):
        check_bool_expr_is_true(x < y, ranges)
    with pytest.raises(ExpressionError, match="ranges of y are not given"):
        check_bool_expr_is_true(x < y, {x: Range(0, 4)})
    with pytest.raises(ExpressionError, match="not a constant"):
        check_bool_expr_is_true(x < 4, {x: Range(0, y)})


def test_systems_of_equations() -> None:
    """The solver's transformation of x + y = 20 is consistent; a wrong map is found out."""
    ranges = {x: Range(0, 10), y: Range(5, 20)}
    solution = solve_linear_equations([x + y == 20], [x, y], ranges)
    check_int_constraints_trans_consistency(solution)
    source = IntConstraints([x], {x: Range(0, 10)}, [])
    target = IntConstraints([y], {y: Range(0, 10)}, [])
    check_int_constraints_trans_consistency(IntConstraintsTransform(source, target, {x: 9 - y}, {y: 9 - x}))
    with pytest.raises(AssertionError, match="does not hold"):
        check_int_constraints_trans_consistency(
            IntConstraintsTransform(source, target, {x: 9 - y}, {y: x + 1})
        )
