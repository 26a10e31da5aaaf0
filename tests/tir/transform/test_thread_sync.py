"""Barriers stand where threads exchange values, and only there. The interpreter is the oracle."""

import numpy as np
import pytest

from tilewright import te, tir
from tilewright.support.errors import LoweringError
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform.thread_sync import ThreadSync, insert_barriers

THREADS = 8


def barriers(nodes_of, body):
    return [call for call in nodes_of(body, tir.Call) if call.op.name == "tir.tvm_storage_sync"]


def threads(builder, extent=THREADS):
    tx = te.thread_axis("threadIdx.x")
    builder.scope_attr(tx, "thread_extent", extent)
    return tx.var


def test_exchange_needs_a_barrier(apply, nodes_of):
    """A thread that reads what another one wrote waits for it."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="out")
    tx = threads(builder)
    shared = builder.allocate("int32", THREADS, name="S", scope="shared")
    shared[tx] = tx * tx
    out[tx] = shared[THREADS - 1 - tx]
    before = tir.PrimFunc([out.asobject()], builder.get())
    after = apply(before, ThreadSync("shared"))
    (barrier,) = barriers(nodes_of, after.body)
    assert barrier.args[0].value == "shared"
    result = np.zeros(THREADS, "int32")
    interpret(after, result)
    np.testing.assert_array_equal(result, np.arange(THREADS)[::-1] ** 2)


def test_own_elements_need_none(apply, nodes_of):
    """A thread that reads what it wrote itself does not wait."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="out")
    tx = threads(builder)
    shared = builder.allocate("int32", THREADS, name="S", scope="shared")
    shared[tx] = tx + 1
    out[tx] = shared[tx]
    before = tir.PrimFunc([out.asobject()], builder.get())
    assert apply(before, ThreadSync("shared")).body is before.body


def test_one_element_for_all(apply, nodes_of):
    """The same index in all threads is not an element of each thread's own."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="out")
    tx = threads(builder)
    shared = builder.allocate("int32", 1, name="S", scope="shared")
    with builder.if_scope(tx == 0):
        shared[0] = 7
    out[tx] = shared[0]
    after = apply(tir.PrimFunc([out.asobject()], builder.get()), ThreadSync("shared"))
    assert len(barriers(nodes_of, after.body)) == 1
    result = np.zeros(THREADS, "int32")
    interpret(after, result)
    np.testing.assert_array_equal(result, np.full(THREADS, 7))


def test_loops_carry(apply, nodes_of):
    """The next iteration overwrites what this one still reads: two barriers in the loop."""
    builder = tir.ir_builder.create()
    a, out = builder.pointer("int32", name="A"), builder.pointer("int32", name="out")
    tx = threads(builder)
    shared = builder.allocate("int32", THREADS, name="S", scope="shared")
    total = builder.allocate("int32", 1, name="total", scope="local")
    total[0] = 0
    with builder.for_range(0, 3, name="k") as k:
        shared[tx] = a[k * THREADS + tx]
        with builder.for_range(0, THREADS, name="j") as j:
            total[0] = total[0] + shared[j] * (j + tx)
    out[tx] = total[0]
    after = apply(tir.PrimFunc([a.asobject(), out.asobject()], builder.get()), ThreadSync("shared"))
    loop = next(node for node in nodes_of(after.body, tir.For) if node.loop_var.name == "k")
    assert len(barriers(nodes_of, loop)) == 2 == len(barriers(nodes_of, after.body))
    values, result = np.arange(24, dtype="int32"), np.zeros(THREADS, "int32")
    interpret(after, values, result)
    j = np.arange(THREADS)
    expected = [sum((row * (j + t)).sum() for row in values.reshape(3, THREADS)) for t in range(THREADS)]
    np.testing.assert_array_equal(result, expected)


def test_the_half_that_was_filled_last(apply, nodes_of):
    """While one half of a double buffer is filled the other one is read without a barrier; what was filled is not."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="out")
    tx = threads(builder)
    shared = builder.allocate("int32", 2 * THREADS, name="S", scope="shared")
    shared[tx] = tx
    builder.emit(tir.Evaluate(tir.call_intrin("int32", "tir.tvm_storage_sync", "shared")))
    with builder.new_scope():
        builder.scope_attr(shared.asobject(), "double_buffer_write", 1)
        shared[tx + THREADS] = tx * 10
    out[tx] = shared[THREADS - 1 - tx]
    out[tx] = out[tx] + shared[2 * THREADS - 1 - tx]
    after = apply(tir.PrimFunc([out.asobject()], builder.get()), ThreadSync("shared"))
    order = [
        "barrier" if isinstance(stmt, tir.Evaluate) else type(stmt).__name__
        for stmt in tir.stmt_list(after.body.body.body)
    ]
    assert order == ["Store", "barrier", "AttrStmt", "Store", "barrier", "Store"]
    result = np.zeros(THREADS, "int32")
    interpret(after, result)
    np.testing.assert_array_equal(result, np.arange(THREADS)[::-1] * 11)


def test_barriers_that_stand_are_enough(apply, nodes_of):
    """Running the pass again adds nothing."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="out")
    tx = threads(builder)
    shared = builder.allocate("int32", THREADS, name="S", scope="shared")
    with builder.for_range(0, 2, name="k"):
        shared[tx] = tx
        out[tx] = shared[THREADS - 1 - tx]
    once = apply(tir.PrimFunc([out.asobject()], builder.get()), ThreadSync("shared"))
    assert apply(once, ThreadSync("shared")).body is once.body


def test_scopes_are_apart(apply, nodes_of):
    """Each kind of memory has its own barriers."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="out")
    tx = threads(builder)
    shared = builder.allocate("int32", THREADS, name="S", scope="shared.dyn")
    shared[tx] = tx
    out[tx] = shared[THREADS - 1 - tx]
    before = tir.PrimFunc([out.asobject()], builder.get())
    assert apply(before, ThreadSync("shared")).body is before.body
    (barrier,) = barriers(nodes_of, apply(before, ThreadSync("shared.dyn")).body)
    assert barrier.args[0].value == "shared.dyn"


def test_no_barrier_in_divergent_code():
    """A barrier that some threads never reach would hang the device: that is an error instead."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="out")
    tx = threads(builder)
    shared = builder.allocate("int32", THREADS, name="S", scope="shared")
    with builder.if_scope(tx < 4):
        shared[tx] = tx
        out[tx] = shared[3 - tx]
    with pytest.raises(LoweringError, match="inside a condition that threads decide differently"):
        insert_barriers(builder.get(), "shared")


def test_no_barrier_in_loops_of_different_length():
    """The same holds for loops that threads run different numbers of times."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="out")
    tx = threads(builder)
    shared = builder.allocate("int32", THREADS, name="S", scope="shared")
    with builder.for_range(0, tx, name="k"):
        shared[tx] = tx
        out[tx] = shared[THREADS - 1 - tx]
    with pytest.raises(LoweringError, match="inside a condition that threads decide differently"):
        insert_barriers(builder.get(), "shared")


def test_uniform_conditions_may_have_barriers(apply, nodes_of):
    """A condition that is the same for all threads of a block is not an obstacle."""
    builder = tir.ir_builder.create()
    n, out = tir.Var("n"), builder.pointer("int32", name="out")
    tx = threads(builder)
    shared = builder.allocate("int32", THREADS, name="S", scope="shared")
    with builder.if_scope(n > 0):
        shared[tx] = tx
        out[tx] = shared[THREADS - 1 - tx]
    after = apply(tir.PrimFunc([n, out.asobject()], builder.get()), ThreadSync("shared"))
    assert len(barriers(nodes_of, after.body)) == 1


def test_global_barriers_are_refused(apply):
    """Blocks of a kernel cannot wait for one another."""
    with pytest.raises(LoweringError, match="write two kernels instead"):
        apply(tir.PrimFunc([], tir.Evaluate(0)), ThreadSync("global"))
