"""An index as a sum of multiples of variables."""

from tilewright.ir.expr import Var
from tilewright.tir.analysis.index_terms import index_terms

I, J, N = Var("i", "int32"), Var("j", "int32"), Var("n", "int32")


def test_multiples_add_up() -> None:
    """Factors on either side are multiplied through sums and differences."""
    strides, rest = index_terms((I * 4 + J) * 8 - (2 * I - N), {I, J})
    assert strides == {I: 30, J: 8}
    assert rest == [N]


def test_other_terms() -> None:
    """What is not a multiple of a variable is a term of its own, even if the variable occurs in it."""
    strides, rest = index_terms(I * 4 + I // 2 - J, {I})
    assert strides == {I: 4}
    assert sorted(map(str, rest)) == ["i // 2", "j"]
