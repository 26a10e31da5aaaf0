"""Integer solvers: see ``linear_system`` for equations and ``inequalities`` for inequalities."""

from tilewright.arith.inequalities import solve_linear_inequalities
from tilewright.arith.int_constraints import IntConstraints, IntConstraintsTransform, IntGroupBounds
from tilewright.arith.linear_system import solve_linear_equations

__all__ = [
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "solve_linear_equations",
    "solve_linear_inequalities",
]
