"""The loops of a script can be scheduled; whatever the schedule, the numbers stay."""

# ruff: noqa: B007, F821

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.te.hybrid.checks import check_everywhere, close, run_lowered

import tilewright as tvm
from tilewright import te
from tilewright.driver.build_module import schedule_to_module
from tilewright.ir.expr import IterVar
from tilewright.support.errors import ScheduleError
from tilewright.te.hybrid import script
from tilewright.tir.interpreter import interpret


@script
def outer_product(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), a.dtype)
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


@script
def matmul(a, b):
    c = output_tensor((6, 10), a.dtype)
    for i in range(6):
        for j in range(10):
            c[i, j] = 0.0
    for i in range(6):
        for j in range(10):
            for k in range(7):
                c[i, j] += a[i, k] * b[k, j]
    return c


def vectors(n: int = 64) -> list[te.Tensor]:
    return [te.placeholder((n,), name="a"), te.placeholder((n,), name="b")]


def body_of(schedule: te.Schedule, parameters: list[te.Tensor]) -> Any:
    """The loops of a schedule, without the memory around them."""
    body = schedule_to_module(schedule, parameters)["main"].body
    return body.body if isinstance(body, tvm.tir.BufferRealize) else body


def loop_names(stmt: Any) -> list[str]:
    """The variables of loops that stand inside one another."""
    names = []
    while isinstance(stmt, tvm.tir.For):
        names.append(stmt.loop_var.name)
        stmt = stmt.body
    return names


def test_split_reorder_annotate() -> None:
    """Split, reordered, parallel and vectorised loops stand in the order that was asked for."""

    def schedule(made: te.Schedule, c: te.Tensor) -> None:
        i, j = c.op.axis
        io, ii = made[c].split(i, 4)
        made[c].parallel(ii)
        jo, ji = made[c].split(j, 4)
        joo, joi = made[c].split(jo, 4)
        made[c].vectorize(ji)
        made[c].unroll(joi)
        made[c].reorder(ii, io, joo, joi, ji)

    a, b = vectors()
    c = outer_product(a, b)
    made = te.create_schedule(c.op)
    schedule(made, c)
    body = body_of(made, [a, b, c])
    assert loop_names(body) == ["i.inner", "i.outer", "j.outer.outer", "j.outer.inner", "j.inner"]
    kind = tvm.tir.ForKind
    assert body.kind == kind.PARALLEL and body.body.body.body.body.kind == kind.VECTORIZED
    check_everywhere(outer_product, vectors(), schedule=schedule)


def test_fuse() -> None:
    """Two loops become one."""
    a, b = vectors()
    c = outer_product(a, b)
    made = te.create_schedule(c.op)
    made[c].fuse(*c.op.axis)
    body = body_of(made, [a, b, c])
    assert loop_names(body) == ["i.j.fused"] and body.extent.value == 4096
    check_everywhere(outer_product, vectors(), schedule=lambda s, c: s[c].fuse(*c.op.axis))


def test_split_that_does_not_divide() -> None:
    """The condition stands right inside the loops that it is about."""
    a, b = vectors()
    c = outer_product(a, b)
    made = te.create_schedule(c.op)
    made[c].split(c.op.axis[0], 3)
    body = body_of(made, [a, b, c])
    assert loop_names(body) == ["i.outer", "i.inner"]
    assert isinstance(body.body.body, tvm.tir.IfThenElse)
    check_everywhere(outer_product, vectors(), schedule=lambda s, c: s[c].split(c.op.axis[0], nparts=5))


def test_threads() -> None:
    """Loops bound to threads print as CUDA source, and the interpreter runs them."""
    a, b = vectors()
    c = outer_product(a, b)
    made = te.create_schedule(c.op)
    made[c].bind(c.op.axis[0], te.thread_axis("blockIdx.x"))
    outer, inner = made[c].split(c.op.axis[1], 48)
    made[c].bind(inner, te.thread_axis("threadIdx.x"))
    source = tvm.build(made, [a, b, c], "cuda", "llvm").imported_modules[0].get_source()
    assert "blockIdx.x" in source and "threadIdx.x" in source
    x, y = np.arange(64, dtype="float32"), np.linspace(0, 1, 64, dtype="float32")
    found = np.zeros((64, 64), "float32")
    interpret(tvm.lower(made, [a, b, c])["main"], x, y, found)
    close(found, np.outer(x, y))
    printed = te.hybrid.build(made, [a, b], [c])
    assert 'in bind("threadIdx.x", 48)' in printed.get_source()
    close(printed(x, y), np.outer(x, y))


def test_axes_of_one_iteration() -> None:
    """Loops that run once, and an axis out of nothing."""

    def schedule(made: te.Schedule, c: te.Tensor) -> None:
        made[c].split(c.op.axis[0], nparts=1)
        made[c].fuse()

    check_everywhere(outer_product, vectors(5), schedule=schedule)


def test_pragma() -> None:
    """Hints stand around the loop."""
    a, b = vectors()
    c = outer_product(a, b)
    made = te.create_schedule(c.op)
    made[c].pragma(c.op.axis[0], "auto_unroll_max_step", 8)
    body = body_of(made, [a, b, c])
    assert isinstance(body, tvm.tir.AttrStmt) and body.attr_key == "pragma_auto_unroll_max_step"


def test_loops_that_depend_on_one_another() -> None:
    """The inner extent may use the outer variable, however that was split; then the order cannot change."""

    @script
    def triangle(a):
        b = output_tensor((9, 9), a.dtype)
        for i in range(9):
            for j in range(i):
                b[i, j] = a[i] + a[j]
        return b

    def split_both(made: te.Schedule, b: te.Tensor) -> None:
        made[b].split(b.op.axis[0], 4)
        made[b].split(b.op.axis[1], 2)

    check_everywhere(triangle, [te.placeholder((9,), name="a")], schedule=split_both)
    a = te.placeholder((9,), name="a")
    b = triangle(a)
    for refused in (lambda s: s.reorder(*reversed(b.op.axis)), lambda s: s.fuse(*b.op.axis)):
        made = te.create_schedule(b.op)
        refused(made[b])
        with pytest.raises(ScheduleError, match="stage triangle, axis .*: its extent depends on i"):
            tvm.lower(made, [a, b])


def test_loops_of_different_places() -> None:
    """Loops that are not directly inside one another keep their places, but can be split."""
    a, b = te.placeholder((6, 7), name="a"), te.placeholder((7, 10), name="b")
    c = matmul(a, b)
    first, second, i, j, k = c.op.axis
    made = te.create_schedule(c.op)
    made[c].fuse(second, i)
    with pytest.raises(ScheduleError, match="fuse on stage matmul, axis i: its loop is not directly inside"):
        tvm.lower(made, [a, b, c])
    made = te.create_schedule(c.op)
    made[c].reorder(i, first)
    with pytest.raises(ScheduleError, match="only loops directly inside one another"):
        tvm.lower(made, [a, b, c])

    def schedule(made: te.Schedule, c: te.Tensor) -> None:
        first, second, i, j, k = c.op.axis
        made[c].vectorize(made[c].split(second, 8)[1])
        ko, ki = made[c].split(k, 3)
        made[c].reorder(ko, i, ki, j)
        made[c].unroll(ki)

    check_everywhere(matmul, [a, b], schedule=schedule)


def test_ordered_loops() -> None:
    """A loop whose iterations add to the same element is not run in parallel."""
    a, b = te.placeholder((6, 7), name="a"), te.placeholder((7, 10), name="b")
    c = matmul(a, b)
    kinds = [axis.iter_type for axis in c.op.axis]
    assert kinds == [IterVar.DataPar] * 4 + [IterVar.Ordered]
    made = te.create_schedule(c.op)
    for step in (made[c].parallel, made[c].vectorize):
        with pytest.raises(ScheduleError, match="its iterations depend on one another"):
            step(c.op.axis[4])
    made[c].bind(c.op.axis[4], te.thread_axis("threadIdx.x"))
    with pytest.raises(
        ScheduleError, match="bind on stage matmul, axis k: its iterations depend on one another"
    ):
        tvm.lower(made, [a, b, c])
    made = te.create_schedule(c.op)
    fused = made[c].fuse(*c.op.axis[3:])
    assert fused.iter_type == IterVar.Ordered
    check_everywhere(matmul, [a, b], schedule=lambda s, c: s[c].unroll(s[c].fuse(*c.op.axis[2:])))


@script
def skewed(a):
    b = output_tensor((6, 6), a.dtype)
    for i in range(5):
        for j in range(5):
            b[i + 1, j] = b[i, j + 1] + a[j]
    return b


@script
def forwards(a):
    b = output_tensor((6, 6), a.dtype)
    for i in range(5):
        for j in range(5):
            b[i + 1, j + 1] = b[i, j] + a[j]
    return b


def swapped(made: te.Schedule, b: te.Tensor) -> None:
    made[b].reorder(*reversed(b.op.axis[-2:]))


def inside_out(made: te.Schedule, b: te.Tensor) -> None:
    outer, inner = made[b].split(b.op.axis[0], 2)
    made[b].reorder(inner, outer)


def tiled(made: te.Schedule, b: te.Tensor) -> None:
    made[b].tile(*b.op.axis, 2, 2)


def in_order(made: te.Schedule, b: te.Tensor) -> None:
    made[b].split(made[b].fuse(*b.op.axis), 3)


@pytest.mark.parametrize(
    ("function", "schedule", "is_legal"),
    [
        (skewed, swapped, False),
        (skewed, inside_out, False),
        (skewed, tiled, False),
        (skewed, in_order, True),
        (forwards, swapped, True),
        (forwards, tiled, True),
        (forwards, inside_out, False),
        (forwards, in_order, True),
        (outer_product, swapped, True),
        (outer_product, inside_out, True),
    ],
)
def test_iterations_that_use_what_others_wrote(function: Any, schedule: Any, is_legal: bool) -> None:
    """An order in which an element would be read before it is written is refused; any other is right."""
    arguments = vectors(6) if function is outer_product else [te.placeholder((6,), name="a")]
    if is_legal:
        check_everywhere(function, arguments, schedule=schedule)
        return
    b = function(*arguments)
    made = te.create_schedule(b.op)
    schedule(made, b)
    with pytest.raises(ScheduleError, match="use what others wrote"):
        tvm.lower(made, [*arguments, b])


def test_fused_empty_ranges() -> None:
    """The product of two extents below zero is not a number of iterations."""

    @script
    def nothing(n, a):
        b = output_tensor((4,), a.dtype)
        for i in range(n - 3):
            for j in range(n - 3):
                b[0] += a[0]
        return b

    n = te.var("n")
    a = te.placeholder((4,), name="a")
    b = nothing(n, a)
    for size, expected in ((1, 0.0), (5, 8.0)):
        made = te.create_schedule(b.op)
        made[b].fuse(*b.op.axis)
        values = np.full(4, 2.0, "float32")
        run_lowered(made, [n, a, b], [size, values], [np.array([expected, 0, 0, 0], "float32")])


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (
            lambda s, c, d: s[d].compute_at(s[c], c.op.axis[0]),
            "compute_at on stage d.*what it reads is whole",
        ),
        (lambda s, c, d: s[c].storage_align(c.op.axis[0], 4, 0), "storage_align on stage outer_product"),
        (lambda s, c, d: s[c].set_store_predicate(c.op.axis[0].var < 3), "set_store_predicate"),
    ],
)
def test_what_cannot_be_done(step: Any, message: str) -> None:
    """Steps that need a tensor expression are refused."""
    a, b = vectors()
    d = te.compute((64,), lambda i: a[i] + 1.0, name="d")
    c = outer_product(d, b)
    made = te.create_schedule(c.op)
    step(made, c, d)
    with pytest.raises(ScheduleError, match=message):
        tvm.lower(made, [a, b, c])


def test_extents_from_memory_stay() -> None:
    """A loop that runs as often as memory says is not split."""

    @script
    def count(a):
        b = output_tensor((4,), "int32")
        for i in range(4):
            for j in range(a[i]):
                b[i] = j
        return b

    a = te.placeholder((4,), "int32", name="a")
    b = count(a)
    made = te.create_schedule(b.op)
    made[b].split(b.op.axis[1], 4)
    with pytest.raises(ScheduleError, match="its extent is read from memory"):
        tvm.lower(made, [a, b])


def test_trace_replays() -> None:
    """Steps on a script's loops are part of the trace."""
    a, b = vectors()
    c = outer_product(a, b)
    made = te.create_schedule(c.op)
    made[c].vectorize(made[c].split(made[c].fuse(*c.op.axis), 16)[1])
    again = te.create_schedule(c.op)
    made.trace.replay(again)
    assert again.trace.as_python() == made.trace.as_python()
    assert tvm.ir.structural_equal(tvm.lower(made, [a, b, c]), tvm.lower(again, [a, b, c]))


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_any_schedule(data: st.DataObject) -> None:
    """Random splits, fusions, orders and annotations of a matrix product's loops leave the numbers as they are."""
    a, b = te.placeholder((6, 7), name="a"), te.placeholder((7, 10), name="b")
    c = matmul(a, b)
    made = te.create_schedule(c.op)
    stage = made[c]
    for _ in range(data.draw(st.integers(1, 6))):
        leaves = stage.leaf_iter_vars
        bands = [leaves[: len(leaves) - _inner(stage)], leaves[len(leaves) - _inner(stage) :]]
        band = bands[data.draw(st.integers(0, 1))]
        step = data.draw(st.sampled_from(["split", "nparts", "fuse", "reorder"]))
        axis = data.draw(st.sampled_from(band))
        try:
            if step == "split":
                stage.split(axis, data.draw(st.integers(1, 8)))
            elif step == "nparts":
                stage.split(axis, nparts=data.draw(st.integers(1, 8)))
            elif step == "fuse" and len(band) > 1:
                place = data.draw(st.integers(0, len(band) - 2))
                stage.fuse(band[place], band[place + 1])
            elif step == "reorder":
                stage.reorder(*data.draw(st.permutations(band)))
        except ScheduleError:
            continue
    x, y = (
        np.random.default_rng(0).random((6, 7), "float32"),
        np.random.default_rng(1).random((7, 10), "float32"),
    )
    found = np.full((6, 10), 9, "float32")
    interpret(schedule_to_module(made, [a, b, c])["main"], x, y, found)
    close(found, x @ y)


def _inner(stage: te.Stage) -> int:
    """How many leaves the second loop nest has."""
    roots = stage.op.axis[2:]
    marks = {root: 1 for root in roots}
    te.schedule.relations.pass_down_marks(stage.relations, marks)
    return sum(1 for leaf in stage.leaf_iter_vars if marks.get(leaf))
