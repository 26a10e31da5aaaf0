"""Integer sets, bounds, canonical affine forms and simplification.

Stands above ``ir`` and below ``tir``: it knows expressions, not statements.
"""

from tilewright.arith.analyzer import Analyzer
from tilewright.arith.const_int_bound import ConstIntBound
from tilewright.arith.core import ConstraintScope
from tilewright.arith.int_set import (
    IntervalSet,
    IntSet,
    intersect,
    neg_inf,
    pos_inf,
    union_lower_bound,
    union_sets,
)
from tilewright.arith.int_set_eval import eval_int_set, eval_set, relax
from tilewright.arith.modular_set import ModularSet

__all__ = [
    "Analyzer",
    "ConstIntBound",
    "ConstraintScope",
    "IntSet",
    "IntervalSet",
    "ModularSet",
    "eval_int_set",
    "eval_set",
    "intersect",
    "neg_inf",
    "pos_inf",
    "relax",
    "union_lower_bound",
    "union_sets",
]
