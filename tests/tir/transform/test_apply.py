"""A function over functions is a pass."""

from tilewright import tir
from tilewright.ir.module import IRModule
from tilewright.tir.transform.apply import Apply


def test_every_function():
    """Each function is replaced by what the given one makes of it."""
    module = IRModule({name: tir.PrimFunc([], tir.Evaluate(0)) for name in "ab"})
    made = Apply(lambda function: function.with_attr("seen", True))(module)
    assert all(function.attrs["seen"] for function in made.functions.values())
