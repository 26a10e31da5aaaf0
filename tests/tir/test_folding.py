"""Substitution computes what becomes constant."""

from tilewright import tir
from tilewright.ir import structural_equal
from tilewright.tir.folding import FoldingSubstitute

I, N = tir.Var("i"), tir.Var("n")


def test_substitution_folds():
    """Putting a constant in place folds what becomes constant, and keeps the rest."""
    expr = tir.Select(tir.all(I * 4 + 3 < 20, N > 0), I // 2 + tir.max(I, 1), 0)
    made = FoldingSubstitute({I: tir.const(4)}).visit(expr)
    assert made.true_value.value == 6
    assert structural_equal(made.condition, N > 0)
