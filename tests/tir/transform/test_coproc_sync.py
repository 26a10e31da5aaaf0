"""Synchronisation with a coprocessor: where the host waits, what is made visible, and the order of the queues."""

import pytest

from tilewright import te, tir
from tilewright.ir.op import Op, register_op_attr
from tilewright.support.errors import LoweringError
from tilewright.tir.functor import post_order_visit
from tilewright.tir.stmt import stmt_list
from tilewright.tir.transform.coproc_sync import CoProcSync

for _name in ("sync", "read_barrier", "write_barrier", "dep_push", "dep_pop"):
    register_op_attr(f"tir.chip.coproc_{_name}", "TGlobalSymbol", f"chip_{_name}")


@pytest.fixture
def chip():
    """The axis that names the coprocessor."""
    return te.thread_axis((0, 1), "chip")


def _called(stmt):
    """Name and constant arguments of a call of the coprocessor's operators; None for another statement."""
    if not isinstance(stmt, tir.Evaluate) or not isinstance(stmt.value.op, Op):
        return None
    name = stmt.value.op.name.removeprefix("tir.chip.coproc_")
    return (name, *[argument.value for argument in stmt.value.args if isinstance(argument, tir.IntImm)])


def test_function_without_coprocessor_is_unchanged(apply):
    """Nothing is inserted where there is no scope."""
    a = tir.Var("A", "handle")
    store = tir.Store(a, 1, 0)
    assert apply(tir.PrimFunc([a], store), CoProcSync()).body is store


def test_host_waits_and_data_becomes_visible(apply, chip):
    """The host writes, the coprocessor reads 32 elements and writes 8, the host reads those in the next iteration."""
    builder = tir.ir_builder.create()
    n = te.size_var("n")
    memory = builder.allocate("float32", 64, name="memory")
    with builder.for_range(0, n, name="i") as i:
        memory[i] = memory[i] * 2.0
        with builder.for_range(0, 4, name="k") as k, builder.for_range(0, 8, name="j") as j:
            builder.scope_attr(chip, "coproc_scope", 0)
            memory[j] = memory[j + k * 8] + 1.0
    body = apply(tir.PrimFunc([n], builder.get()), CoProcSync()).body.body.body
    calls = [_called(stmt) for stmt in stmt_list(body)]
    assert calls == [None, ("read_barrier", 32, 0, 32), None, ("sync",), ("write_barrier", 32, 0, 8)]


def test_memory_of_one_side_needs_no_barrier(apply, chip):
    """Where only the coprocessor uses memory the host waits once, at the end."""
    builder = tir.ir_builder.create()
    memory = builder.allocate("float32", 8, name="memory")
    with builder.for_range(0, 8, name="i") as i:
        builder.scope_attr(chip, "coproc_scope", 0)
        memory[i] = memory[i] + 1.0
    parts = stmt_list(apply(tir.PrimFunc([], builder.get()), CoProcSync()).body)
    assert isinstance(parts[0], tir.Allocate) and _called(parts[1]) == ("sync",)
    found = []
    post_order_visit(parts[0], lambda node: found.append(isinstance(node, tir.Evaluate)))
    assert not any(found)


def test_queues_follow_each_other(apply, chip):
    """Queue 1 then 2 in a loop, then queue 3: every pop has its push, before and after the loop included."""
    builder = tir.ir_builder.create()
    n = te.size_var("n")
    memory = builder.allocate("float32", 8, name="memory")
    with builder.for_range(0, n, name="i"):
        for queue in (1, 2):
            with builder.new_scope():
                builder.scope_attr(chip, "coproc_scope", queue)
                memory[0] = 1.0
    with builder.new_scope():
        builder.scope_attr(chip, "coproc_scope", 3)
        memory[0] = 0.0
    allocate, last = stmt_list(apply(tir.PrimFunc([n], builder.get()), CoProcSync()).body)
    assert _called(last) == ("sync",)
    around = stmt_list(allocate.body)
    loop = around[1]
    outside = [_called(stmt) for stmt in around]
    assert outside == [("dep_push", 2, 1), None, ("dep_push", 2, 3), ("dep_pop", 2, 1), None]
    inside = [[_called(stmt) for stmt in stmt_list(scope.body)] for scope in stmt_list(loop.body)]
    assert inside == [
        [("dep_pop", 2, 1), None, ("dep_push", 1, 2)],
        [("dep_pop", 1, 2), None, ("dep_push", 2, 1)],
    ]
    assert [_called(stmt) for stmt in stmt_list(around[-1].body)] == [("dep_pop", 2, 3), None]


def test_two_coprocessors_are_an_error(apply, chip):
    """All scopes of a function are of one axis."""
    memory = tir.Var("memory", "handle")
    other = te.thread_axis((0, 1), "other")
    body = tir.SeqStmt(
        [tir.AttrStmt(axis, "coproc_scope", 0, tir.Store(memory, 1, 0)) for axis in (chip, other)]
    )
    with pytest.raises(LoweringError, match="one axis"):
        apply(tir.PrimFunc([memory], body), CoProcSync())
