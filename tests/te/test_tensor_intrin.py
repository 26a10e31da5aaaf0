"""Declaring tensor intrinsics, and computing with them inside ``te.compute``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.te.schedule.checks import check, random

from tilewright import te, tir
from tilewright.support.errors import ExpressionError


def scale_row(size: int) -> te.TensorIntrin:
    """Multiplies a row by a scalar."""
    row = te.placeholder((size,), name="row")
    factor = te.var("factor", "float32")
    scaled = te.compute((size,), lambda i: row[i] * factor, name="scaled")

    def emit(ins: list[tir.Buffer], outs: list[tir.Buffer], scalars: list[tir.Var]) -> tir.Stmt:
        builder = tir.ir_builder.create()
        source, target = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
        with builder.for_range(0, size, "i") as i:
            target[i] = source[i] * scalars[0]
        return builder.get()

    return te.decl_tensor_intrin(scaled.op, emit, name="scale_row", scalar_params=[factor])


def sum_rows(size: int) -> te.TensorIntrin:
    """Adds rows up: a start and a continuation."""
    row = te.placeholder((size,), name="row")
    k = te.reduce_axis((0, 1), name="k")
    total = te.compute((size,), lambda i: te.sum(row[i], axis=k), name="total")

    def emit(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tuple[None, tir.Stmt, tir.Stmt]:
        def loop(body: Any) -> tir.Stmt:
            builder = tir.ir_builder.create()
            source, target = builder.buffer_ptr(ins[0]), builder.buffer_ptr(outs[0])
            with builder.for_range(0, size, "i") as i:
                body(source, target, i)
            return builder.get()

        def clear(source: Any, target: Any, i: Any) -> None:
            target[i] = 0.0

        def add(source: Any, target: Any, i: Any) -> None:
            target[i] = target[i] + source[i]

        return None, loop(clear), loop(add)

    return te.decl_tensor_intrin(total.op, emit, name="sum_rows")


def test_what_a_declaration_holds() -> None:
    """Operation, inputs, buffers of inputs and outputs, and the three parts."""
    intrin = sum_rows(4)
    assert intrin.op.name == "total" and [one.name for one in intrin.inputs] == ["row"]
    assert [buffer.name for buffer in intrin.buffers] == ["row", "total"]
    assert intrin.body is None and intrin.reduce_init is not None and intrin.reduce_update is not None
    assert repr(intrin) == "TensorIntrin(sum_rows)"


def test_buffers_that_are_given() -> None:
    """``binds`` gives buffers for some tensors; parameters for all others."""
    row = te.placeholder((4,), name="row")
    out = te.compute((4,), lambda i: row[i], name="out")
    buffer = tir.decl_buffer((4,), "float32", "mine", scope="shared")
    seen: list[tir.Buffer] = []

    def emit(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        seen.extend([*ins, *outs])
        return tir.Evaluate(0)

    te.decl_tensor_intrin(out.op, emit, binds={row: buffer}, default_buffer_params={"data_alignment": 32})
    assert seen[0] is buffer
    assert seen[1].data_alignment == 32


@pytest.mark.parametrize("steps", ["none", "split", "fused", "reordered"])
def test_a_tensor_computed_by_rows(steps: str) -> None:
    """The axes of the function are loops under any schedule, the last dimension is inside the intrinsic; the
    scalar is an expression of the axes."""
    a = te.placeholder((5, 3, 6), name="A")
    intrin = scale_row(6)
    b = te.compute(
        (5, 3, 6), lambda i, j: intrin(a[i, j, 0:6], scalar_inputs=[(i + j).astype("float32")]), name="B"
    )
    assert len(b.op.axis) == 3 and isinstance(b.op, te.BaseComputeOp)
    s = te.create_schedule(b.op)
    i, j = s[b].leaf_iter_vars
    if steps == "split":
        s[b].split(i, factor=2)
    elif steps == "fused":
        s[b].split(s[b].fuse(i, j), factor=4)
    elif steps == "reordered":
        s[b].reorder(j, i)
    values = random(5, 3, 6)
    factors = np.add.outer(np.arange(5), np.arange(3)).astype("float32")
    check(s, [a, b], [values], values * factors[:, :, None], compiled=steps == "fused")


def test_scalars_between_the_tensors() -> None:
    """Arguments that are no tensors are the scalars, wherever they stand."""
    a = te.placeholder((5, 6), name="A")
    intrin = scale_row(6)
    b = te.compute((5, 6), lambda i: intrin(i.astype("float32"), a[i, 0:6]), name="B")
    values = random(5, 6)
    check(te.create_schedule(b.op), [a, b], [values], values * np.arange(5, dtype="float32")[:, None])


def test_producers_and_readers_around_it() -> None:
    """Its producer is computed at its loop, it is computed at its reader's loop, each as much as is needed."""
    a = te.placeholder((5, 6), name="A")
    p = te.compute((5, 6), lambda i, j: a[i, j] + 1.0, name="P")
    intrin = scale_row(6)
    b = te.compute((5, 6), lambda i: intrin(p[i, 0:6], scalar_inputs=[2.0]), name="B")
    c = te.compute((5, 6), lambda i, j: b[i, j] - 1.0, name="C")
    s = te.create_schedule(c.op)
    outer, _ = s[c].split(c.op.axis[0], factor=2)
    s[b].compute_at(s[c], outer)
    s[p].compute_at(s[b], b.op.axis[0])
    bounds = te.schedule.infer_bound(s.normalize())
    assert bounds[p.op.axis[0]].extent.value == 1
    assert bounds[b.op.axis[0]].extent.value == 2
    values = random(5, 6)
    check(s, [a, c], [values], (values + 1) * 2 - 1)


@pytest.mark.parametrize("factor", [None, 2])
def test_a_reduction_around_it(factor: int | None) -> None:
    """With ``reduce_axis`` the intrinsic starts once and continues for each iteration, also in splits that do not
    divide."""
    a = te.placeholder((4, 7, 6), name="A")
    k = te.reduce_axis((0, 7), name="k")
    intrin = sum_rows(6)
    b = te.compute((4, 6), lambda i: intrin(a[i, k, 0:6], reduce_axis=k), name="B")
    assert b.op.reduce_axis == (k,)
    s = te.create_schedule(b.op)
    if factor is not None:
        s[b].split(k, factor=factor)
        s[b].split(b.op.axis[0], factor=3)
    values = random(4, 7, 6)
    check(s, [a, b], [values], values.sum(1))


def test_mistakes_are_refused() -> None:
    """Inputs that are computed, too many parts, parts that are not statements, wrong counts of arguments."""
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i], name="b")
    c = te.compute((4,), lambda i: b[i], name="c")
    with pytest.raises(ExpressionError, match="must be placeholders, b is computed"):
        te.decl_tensor_intrin(c.op, lambda ins, outs: tir.Evaluate(0))
    with pytest.raises(ExpressionError, match="4 statements"):
        te.decl_tensor_intrin(b.op, lambda ins, outs: [tir.Evaluate(0)] * 4)
    with pytest.raises(ExpressionError, match="neither a statement nor a call"):
        te.decl_tensor_intrin(b.op, lambda ins, outs: "nothing")
    with pytest.raises(ExpressionError, match="not 'b'"):
        te.decl_tensor_intrin("b", lambda ins, outs: None)  # type: ignore[arg-type]
    intrin = scale_row(4)
    with pytest.raises(ExpressionError, match="takes 1 tensors, 2 were given"):
        te.compute((4,), lambda: intrin(a, a, scalar_inputs=[1.0]))
    with pytest.raises(ExpressionError, match="takes 1 scalars, 0 were given"):
        te.compute((4,), lambda: intrin(a))
