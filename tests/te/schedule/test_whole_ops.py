"""Stages that work on whole tensors: scans and statements inside schedules."""

from __future__ import annotations

import numpy as np
import pytest
from tests.te.schedule.checks import check, parts, random

import tilewright as tvm
from tilewright import te, tir
from tilewright.driver.build_module import schedule_to_module
from tilewright.support.errors import ScheduleError


def running_sum(steps: int = 6, width: int = 5) -> list[te.Tensor]:
    """A running sum, then one more stage."""
    x = te.placeholder((steps, width), name="X")
    state = te.placeholder((steps, width), name="state")
    init = te.compute((1, width), lambda t, i: x[0, i], name="init")
    update = te.compute((steps, width), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    scan = te.scan(init, update, state, inputs=[x], name="scan")
    return [x, init, update, scan, te.compute((steps, width), lambda t, i: scan[t, i] * 2.0, name="out")]


def test_a_scan_in_the_middle() -> None:
    """Its memory is realised like any other, its stages run inside its loop."""
    x, init, update, scan, out = running_sum()
    s = te.create_schedule(out.op)
    s[init].split(init.op.axis[1], factor=2)
    s[update].split(update.op.axis[1], factor=3)
    function = schedule_to_module(s, [x, out])["main"]
    assert [one.buffer.name for one in parts(function, tir.BufferRealize)] == ["scan"]
    values = random(6, 5)
    check(s, [x, out], [values], values.cumsum(0) * 2, compiled=True)
    assert scan.op.scan_axis.dom.extent.value == 5


def test_a_scan_is_computed_where_it_belongs() -> None:
    """What depends on neither state nor inputs stays outside the scan's loop."""
    x = te.placeholder((4, 3), name="X")
    y = te.placeholder((3,), name="Y")
    state = te.placeholder((4, 3), name="state")
    side = te.compute((3,), lambda i: y[i] * 2.0, name="side")
    init = te.compute((1, 3), lambda t, i: x[0, i], name="init")
    update = te.compute((4, 3), lambda t, i: state[t - 1, i] + side[i], name="update")
    scan = te.scan(init, update, state, inputs=[x], name="scan")
    s = te.create_schedule(scan.op)
    assert s[side].group is None and s[update].group is not None
    values, added = random(4, 3), random(3)
    expected = values[0] + np.arange(4)[:, None] * added * 2
    check(s, [x, y, scan], [values, added], expected.astype("float32"))


def test_the_update_of_a_scan_stays_in_it() -> None:
    """It has no other place."""
    _, _, update, scan, out = running_sum()
    s = te.create_schedule(out.op)
    with pytest.raises(ScheduleError, match="compute_at on stage update"):
        s[update].compute_at(s[out], out.op.axis[0])
    assert s[scan].op is scan.op


def test_statements_between_stages() -> None:
    """An extern reads and writes whole tensors; its neighbours are scheduled around it."""
    a = te.placeholder((4, 6), name="A")
    b = te.compute((4, 6), lambda i, j: a[i, j] + 1.0, name="B")

    def reverse(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        builder = tir.ir_builder.create()
        source, target = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        with builder.for_range(0, 24, "i") as i:
            target[i] = source[23 - i]
        return builder.get()

    c = te.extern((4, 6), [b], reverse, name="C")
    d = te.compute((4, 6), lambda i, j: c[i, j] * 3.0, name="D")
    s = te.create_schedule(d.op)
    s[b].vectorize(s[b].split(b.op.axis[1], factor=4)[1])
    s[d].parallel(d.op.axis[0])
    values = random(4, 6)
    check(s, [a, d], [values], (values + 1)[::-1, ::-1] * 3, compiled=True)


def test_a_statement_inside_of_a_loop() -> None:
    """Placed at its reader's loop, it runs whole in each iteration."""
    a = te.placeholder((4,), name="A")

    def double(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        builder = tir.ir_builder.create()
        source, target = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        with builder.for_range(0, 4, "i") as i:
            target[i] = source[i] * 2.0
        return builder.get()

    b = te.extern((4,), [a], double, name="B")
    c = te.compute((4,), lambda i: b[3 - i], name="C")
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    values = random(4)
    check(s, [a, c], [values], values[::-1] * 2)


def test_an_intrinsic_without_a_part_it_needs() -> None:
    """A reduction around an intrinsic that cannot start and continue."""
    row = te.placeholder((4,), name="row")
    copied = te.compute((4,), lambda i: row[i], name="copied")
    intrin = te.decl_tensor_intrin(copied.op, lambda ins, outs: tir.Evaluate(0), name="copy_row")
    a = te.placeholder((3, 5, 4), name="A")
    k = te.reduce_axis((0, 5), name="k")
    b = te.compute((3, 4), lambda i: intrin(a[i, k, 0:4], reduce_axis=k), name="B")
    with pytest.raises(
        ScheduleError, match="on stage B: intrinsic copy_row does not define reduce_init and reduce_update"
    ):
        tvm.lower(te.create_schedule(b.op), [a, b])
