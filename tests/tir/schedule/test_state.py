"""References to loops and blocks, and what depends on what."""

from __future__ import annotations

import pytest
from tests.tir.schedule.programs import elementwise, matmul, refused, two_consumers

from tilewright import te, tir
from tilewright.support.errors import ScheduleError
from tilewright.tir.schedule import DepKind, ScheduleState


def test_references() -> None:
    """Every loop and block has one, with what is around it as its parent."""
    function = matmul().function
    state = tir.ScheduleState(function)
    root = state.root(function)
    block = state.child_blocks(root)[0]
    path = []
    current = block.parent
    while current is not None:
        path.append(current.label)
        current = current.parent
    assert path == ["loop k", "loop j", "loop i", "block root"]
    assert state.get_sref(block.stmt) is block and repr(block) == "StmtSRef(block C)"
    with pytest.raises(ScheduleError, match="this Block is not part of the scheduled program"):
        state.get_sref(elementwise().function.body.block)


def test_replace_keeps_references() -> None:
    """A new body of a loop: the loops around it are the same loops, what is gone is empty."""
    function = elementwise().function
    state = ScheduleState(function)
    root = state.root(function)
    outer = state.children(root)[0]
    inner = state.children(outer)[0]
    (block,) = state.child_blocks(inner)
    saved = state.snapshot()
    state.replace({inner.stmt: tir.Evaluate(tir.call_extern("int32", "f"))})
    assert outer.loop.body.value.op.name == "tir.call_extern" and root.block is state.mod["main"].body.block
    assert inner.stmt is None and block.stmt is None and block.label == "a removed statement"
    state.restore(saved)
    assert state.mod["main"].body is function.body
    assert inner.stmt is outer.loop.body and block.stmt is state.realize(block).block


def test_dependencies() -> None:
    """Who writes what others read."""
    function = two_consumers().function
    state = ScheduleState(function)
    scope = state.get_block_scope(state.root(function))
    b, c, d = scope.child_blocks
    assert [(one.dst, one.kind) for one in scope.get_deps_by_src(b)] == [(c, DepKind.RAW), (d, DepKind.RAW)]
    assert [one.src for one in scope.get_deps_by_dst(d)] == [b]
    assert scope.consumers(b) == [c, d] and scope.producers(c) == [b]


def test_one_object_at_two_places() -> None:
    """Such a program has no schedule: nobody could say which of the two is meant."""
    function = elementwise().function
    root = function.body.block
    twice = root.replace(body=tir.SeqStmt([*root.body.seq, root.body.seq[0]]))
    with pytest.raises(ScheduleError, match="loop i occurs at two places of the program"):
        tir.Schedule(function.with_body(tir.BlockRealize([], True, twice)))


def test_blocks_say_what_they_touch() -> None:
    """A block that reads what it does not name could be moved before what it depends on."""
    function = elementwise().function
    root = function.body.block
    first = root.body.seq[0]
    realize = first.body.body
    silent = realize.replace(block=realize.block.replace(reads=()))
    changed = first.replace(body=first.body.replace(body=silent))
    body = root.replace(body=tir.SeqStmt([changed, *root.body.seq[1:]]))
    with pytest.raises(ScheduleError, match="block B reads A and does not say so"):
        tir.Schedule(function.with_body(tir.BlockRealize([], True, body)))


def test_calls_of_other_functions() -> None:
    """What a block hands to a function is what it declares: inputs are read, outputs written."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.extern(
        (8,), [b], lambda ins, outs: tir.call_packed("f", ins[0], outs[0]), dtype="float32", name="C"
    )
    schedule = tir.Schedule(te.create_prim_func([a, c]))
    assert [schedule.get(one).name_hint for one in schedule.get_producers(schedule.get_block("C"))] == ["B"]
    refused(
        schedule,
        lambda: schedule.compute_inline(schedule.get_block("B")),
        "used through a view or by its pointer",
    )
