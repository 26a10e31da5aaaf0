"""Copy loops are handed to a user's function with strides and padding."""

import pytest

from tilewright import tir
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.inject_copy_intrin import InjectCopyIntrin

A, B = tir.Var("A", "handle"), tir.Var("B", "handle")
M, N = tir.SizeVar("m", "int32"), tir.SizeVar("n", "int32")
I, J = tir.Var("i", "int32"), tir.Var("j", "int32")


def copied(value, loops, index):
    """Run the pass on a copy; gives what the user's function was given."""
    stmt = tir.Store(B, value, index)
    for variable, extent in reversed(loops):
        stmt = tir.For(variable, 0, extent, 0, stmt)
    calls = []

    def intrinsic(*given):
        calls.append(given)
        return tir.Evaluate(7)

    def run(apply):
        function = tir.PrimFunc([A, B, M, N], tir.AttrStmt(I, "pragma_memcpy", 1, stmt))
        after = apply(function, InjectCopyIntrin("memcpy", intrinsic))
        assert after.body.value.value == 7
        return calls[0]

    return run


def test_two_dimensions(apply):
    """A copy of a matrix has its shape and the strides of both sides."""
    value = tir.Load("float32", A, I * N + J)
    source, target, before, after, padding = copied(value, [(I, M), (J, N)], I * N + J)(apply)
    for buffer, data in ((source, A), (target, B)):
        assert buffer.data is data and buffer.shape == (M, N)
        assert buffer.strides[0] is N and buffer.strides[1].value == 1 and buffer.elem_offset.value == 0
    assert before == [] and after == [] and padding is None


def test_padding(apply):
    """A padded row has one element before and the rest after, and the source starts where reading starts."""
    inside = tir.all(I >= 1, I < N)
    value = tir.if_then_else(inside, tir.Load("float32", A, I - 1), 1.0)
    source, target, before, after, padding = copied(value, [(I, N + 2)], I)(apply)
    assert before[0].value == 1 and after[0].value == 2 and padding.value == 1.0
    assert source.elem_offset.value == 0 and repr(source.shape[0]) == "n - 1"
    assert repr(target.shape[0]) == "n + 2"


def test_single_element(apply):
    """A copy without loops is one element."""
    source, target, *_ = copied(tir.Load("float32", A, 3), [], 5)(apply)
    assert source.elem_offset.value == 3 and target.elem_offset.value == 5
    assert source.shape[0].value == 1 and target.strides[0].value == 1


def test_other_statements_are_refused(apply):
    """What is not a copy is an error that names the pragma."""
    with pytest.raises(LoweringError, match="pragma_memcpy is not a copy"):
        copied(tir.Load("float32", A, I) + 1.0, [(I, 4)], I)(apply)
