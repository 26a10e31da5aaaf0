"""Lowering refuses programs that read outside of a buffer at an index that they determine themselves."""

import pytest

import tilewright as tvm
from tilewright import te
from tilewright.support.errors import VerifyError
from tilewright.tir.transform import VerifyReads


def shifted(guarded):
    """B[i] = A[i + 1] for all 16 elements of both, of which the last read is outside unless it is guarded."""
    data = te.placeholder((16,), name="A")

    def element(i):
        value = data[tvm.tir.floormod(i * 17, 17) + i + 1]
        return tvm.tir.if_then_else(i < 15, value, tvm.tir.const(0, "float32")) if guarded else value

    made = te.compute((16,), element, name="B")
    return te.create_schedule(made.op), [data, made]


def test_a_read_outside_ends_lowering_with_an_example():
    """The message names the element, the buffer and the iteration."""
    with pytest.raises(VerifyError, match=r"element 16 of A, which has 16, .* = 15"):
        tvm.lower(*shifted(guarded=False))


def test_a_guarded_read_is_accepted_and_the_program_stays_as_it_is():
    """The pass only looks."""
    module = tvm.lower(*shifted(guarded=True))
    assert VerifyReads()(module)["main"] is module["main"]


def test_accesses_that_are_checked_at_run_time_are_left_to_that():
    """With ``tir.instrument_bound_checkers`` the program stops where it reads outside."""
    with tvm.transform.PassContext(config={"tir.instrument_bound_checkers": True}):
        assert tvm.lower(*shifted(guarded=False))["main"] is not None
