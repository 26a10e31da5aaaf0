"""Vector loads whose index depends on a scalar choice."""

import numpy as np

import tilewright as tvm
from tilewright import te
from tilewright.ir.expr import Select
from tilewright.ir.functor import post_order


def _broadcast_add():
    """Rows of two matrices whose columns are open, and may be one in the first."""
    rows, columns, others = te.size_var("rows"), te.size_var("columns"), te.size_var("others")
    first = te.placeholder((rows, columns), name="first")
    second = te.placeholder((rows, others), name="second")
    column = lambda i: Select(columns.equal(1), 0, i)
    result = te.compute((rows, others), lambda i, j: first[i, column(j)] + second[i, j], name="result")
    schedule = te.create_schedule(result.op)
    _, lanes = schedule[result].split(result.op.axis[1], factor=8)
    schedule[result].vectorize(lanes)
    return schedule, [first, second, result]


def test_no_load_gathers():
    """Every vector load is of consecutive elements, or of one element in all lanes."""
    lowered = tvm.lower(*_broadcast_add(), name="add")["add"]
    loads = [node for node in post_order(lowered.body) if isinstance(node, tvm.tir.Load)]
    vectors = [node.index for node in loads if node.dtype.lanes > 1]
    assert {type(index).__name__ for index in vectors} == {"Ramp", "Broadcast"}


def test_both_sides_compute_the_same():
    """With one column, which is not read past, and with as many columns as the result has."""
    add = tvm.build(*_broadcast_add(), target="llvm", name="add")
    rng = np.random.default_rng(0)
    for columns in (1, 19):
        first = rng.standard_normal((3, columns)).astype("float32")
        second = rng.standard_normal((3, 19)).astype("float32")
        result = tvm.nd.empty((3, 19))
        add(tvm.nd.array(first), tvm.nd.array(second), result)
        np.testing.assert_array_equal(result.numpy(), first + second)


def test_a_condition_of_lanes_stays():
    """A choice that differs from lane to lane is no choice between loads."""
    data = te.placeholder((16,), name="data")
    result = te.compute((16,), lambda i: data[Select(i < 4, 0, i)], name="result")
    schedule = te.create_schedule(result.op)
    schedule[result].vectorize(result.op.axis[0])
    lowered = tvm.lower(schedule, [data, result], name="pick")["pick"]
    calls = [node for node in post_order(lowered.body) if isinstance(node, tvm.tir.Call)]
    assert not [node for node in calls if node.op.name == "tir.if_then_else"]
    pick = tvm.build(schedule, [data, result], target="llvm")
    given, found = np.arange(16, dtype="float32") + 1, tvm.nd.empty((16,))
    pick(tvm.nd.array(given), found)
    np.testing.assert_array_equal(found.numpy(), given[[0] * 4 + list(range(4, 16))])
