"""A double-buffered loop fills the next half while it uses the present one, with the same results."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.inject_double_buffer import InjectDoubleBuffer, inject_double_buffer


def program(count, allocate_inside=True):
    """for i: B = A[i * 4 : i * 4 + 4]; C[i] = sum of B"""
    builder = tir.ir_builder.create()
    a, c = builder.pointer("int32", name="A"), builder.pointer("int32", name="C")
    if not allocate_inside:
        b = builder.allocate("int32", 4, name="B", scope="shared")
    with builder.for_range(0, count, name="i") as i:
        if allocate_inside:
            b = builder.allocate("int32", 4, name="B", scope="shared")
        with builder.new_scope():
            builder.scope_attr(b.asobject(), "double_buffer_scope", 1)
            with builder.for_range(0, 4, name="j") as j:
                b[j] = a[i * 4 + j]
        with builder.for_range(0, 4, name="k") as k:
            c[i] = c[i] + b[k]
    extra = [count] if isinstance(count, tir.Var) else []
    return tir.PrimFunc([a.asobject(), c.asobject(), *extra], builder.get())


@pytest.mark.parametrize("split", [0, 1, 2, 4])
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_results_do_not_change(apply, agree, split, count):
    """Whatever the number of iterations and the split factor, the sums are the same."""
    before = program(count)
    with PassContext(config={"tir.InjectDoubleBuffer": {"split_loop": split}}):
        after = apply(before, InjectDoubleBuffer())
    rng = np.random.default_rng(0)
    agree(before, after, rng.integers(0, 99, count * 4, dtype="int32"), np.zeros(count, "int32"))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_unknown_number_of_iterations(apply, agree, count):
    """A loop that may not run at all does not fill the buffer either."""
    before = program(tir.SizeVar("n", "int32"))
    after = apply(before, InjectDoubleBuffer())
    agree(before, after, np.arange(count * 4, dtype="int32"), np.zeros(count, "int32"), count)


def test_buffer_has_two_halves_before_the_loop(apply, nodes_of):
    """The allocation moves out of the loop and gets a leading two; fills are marked as such."""
    after = apply(program(100), InjectDoubleBuffer())
    assert isinstance(after.body, tir.Allocate)
    assert [extent.value for extent in after.body.extents] == [2, 4]
    keys = [found.attr_key for found in nodes_of(after.body, tir.AttrStmt)]
    assert set(keys) == {"double_buffer_write"}
    assert after.body.body[1].extent.value == 99


def test_allocation_outside_stays_there(apply, agree):
    """A buffer allocated outside the loop is doubled where it stands."""
    before = program(6, allocate_inside=False)
    after = apply(before, InjectDoubleBuffer())
    assert isinstance(after.body, tir.Allocate) and after.body.extents[0].value == 2
    agree(before, after, np.arange(24, dtype="int32"), np.zeros(6, "int32"))


def test_misuse_is_an_error():
    """A fill outside a loop, a write elsewhere and an odd split factor are errors."""
    b, i = tir.Var("B", "handle"), tir.Var("i", "int32")
    fill = tir.AttrStmt(b, "double_buffer_scope", 1, tir.Store(b, 1, 0))
    with pytest.raises(LoweringError, match="must be filled inside a loop"):
        inject_double_buffer(tir.Allocate(b, "int32", [4], True, fill))
    both = tir.For(i, 0, 4, 0, tir.SeqStmt([fill, tir.Store(b, 2, 0)]))
    with pytest.raises(LoweringError, match="outside its double_buffer_scope"):
        inject_double_buffer(tir.Allocate(b, "int32", [4], True, both))
    with pytest.raises(LoweringError, match="even number, not 3"):
        inject_double_buffer(both, split_loop=3)


def test_program_without_double_buffers_is_the_same_object():
    """Nothing to do gives the very same statement."""
    a, i = tir.Var("A", "handle"), tir.Var("i", "int32")
    stmt = tir.For(i, 0, 4, 0, tir.Store(a, i, i))
    assert inject_double_buffer(stmt) is stmt
