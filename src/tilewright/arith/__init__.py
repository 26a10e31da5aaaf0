"""Integer sets, bounds, canonical affine forms and simplification.

This layer is above ``ir`` and below ``tir``: it works on expressions, not on statements.
"""

from tilewright.arith.analyzer import Analyzer, ConstIntBound, ConstraintScope, ModularSet
from tilewright.arith.bound import deduce_bound
from tilewright.arith.inequalities import solve_linear_inequalities
from tilewright.arith.int_constraints import IntConstraints, IntConstraintsTransform, IntGroupBounds
from tilewright.arith.int_set import (
    IntervalSet,
    IntSet,
    estimate_region_lower_bound,
    intersect,
    neg_inf,
    pos_inf,
    union_lower_bound,
    union_sets,
)
from tilewright.arith.int_set_eval import eval_int_set, eval_set, relax
from tilewright.arith.iter_detect import detect_iter_map, inverse_affine_iter_map
from tilewright.arith.iter_map import (
    IterMapExpr,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    normalize_iter_map_to_expr,
)
from tilewright.arith.linear_system import solve_linear_equations
from tilewright.arith.pattern import detect_clip_bound, detect_linear_equation
from tilewright.arith.subspace import subspace_divide

__all__ = [
    "Analyzer",
    "ConstIntBound",
    "ConstraintScope",
    "IntConstraints",
    "IntConstraintsTransform",
    "IntGroupBounds",
    "IntSet",
    "IntervalSet",
    "IterMapExpr",
    "IterMark",
    "IterSplitExpr",
    "IterSumExpr",
    "ModularSet",
    "deduce_bound",
    "detect_clip_bound",
    "detect_iter_map",
    "detect_linear_equation",
    "estimate_region_lower_bound",
    "eval_int_set",
    "eval_set",
    "intersect",
    "inverse_affine_iter_map",
    "neg_inf",
    "normalize_iter_map_to_expr",
    "pos_inf",
    "relax",
    "solve_linear_equations",
    "solve_linear_inequalities",
    "subspace_divide",
    "union_lower_bound",
    "union_sets",
]
