"""Loops replaced by intrinsics: what is computed, and what does not match."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.te.schedule.checks import check, parts, random

import tilewright as tvm
from tilewright import te, tir
from tilewright.support.errors import ScheduleError


def loop(extents: list[Any], body: Any) -> tir.Stmt:
    """Loops around a body that a function of the builder and the indices writes."""
    builder = tir.ir_builder.create()

    def nest(indices: list[Any], rest: list[Any]) -> None:
        if rest:
            with builder.for_range(0, rest[0], f"i{len(indices)}") as index:
                nest([*indices, index], rest[1:])
        else:
            body(builder, *indices)

    nest([], extents)
    return builder.get()


def vector_add(size: int) -> te.TensorIntrin:
    """Sums of two vectors of this size."""
    x, y = te.placeholder((size,), name="x"), te.placeholder((size,), name="y")
    z = te.compute((size,), lambda i: x[i] + y[i], name="z")

    def emit(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        def one(builder: Any, i: Any) -> None:
            left, right, out = (builder.buffer_ptr(buffer) for buffer in (*ins, *outs))
            out[i] = left[i] + right[i]

        return loop([size], one)

    return te.decl_tensor_intrin(z.op, emit, name="vector_add")


def dot(rows: int, depth: int, which: tuple[str, ...] = ("body", "init", "update")) -> te.TensorIntrin:
    """A matrix times a vector; ``which`` parts the intrinsic has."""
    vector, matrix = te.placeholder((depth,), name="v"), te.placeholder((rows, depth), name="m")
    k = te.reduce_axis((0, depth), name="k")
    result = te.compute((rows,), lambda i: te.sum(vector[k] * matrix[i, k], axis=k), name="r")

    def emit(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tuple[tir.Stmt | None, ...]:
        def clear(builder: Any, i: Any) -> None:
            builder.buffer_ptr(outs[0])[i] = 0.0

        def add(builder: Any, i: Any, j: Any) -> None:
            left, right, out = (builder.buffer_ptr(buffer) for buffer in (*ins, *outs))
            out[i] = out[i] + left[j] * right[i, j]

        init, update = loop([rows], clear), loop([rows, depth], add)
        body = tir.SeqStmt([loop([rows], clear), loop([rows, depth], add)])
        return tuple(
            part if name in which else None
            for name, part in (("body", body), ("init", init), ("update", update))
        )

    strided = {vector: {"strides": [1]}, matrix: {"strides": [te.var("s"), 1]}, result: {"strides": [1]}}
    binds = {
        tensor: tir.decl_buffer(tensor.shape, tensor.dtype, tensor.op.name, offset_factor=1, **more)
        for tensor, more in strided.items()
    }
    return te.decl_tensor_intrin(result.op, emit, name="dot", binds=binds)


def product(m: int = 4, n: int = 12, depth: int = 8) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """A product with the second operand transposed."""
    a, b = te.placeholder((m, depth), name="A"), te.placeholder((n, depth), name="B")
    k = te.reduce_axis((0, depth), name="k")
    return a, b, te.compute((m, n), lambda i, j: te.sum(a[i, k] * b[j, k], axis=k), name="C")


def operands() -> tuple[list[np.ndarray], np.ndarray]:
    """Random operands of the product and its value."""
    x, y = random(4, 8), random(12, 8)
    return [x, y], x @ y.T


def test_elementwise() -> None:
    """Blocks of a vector are computed by the intrinsic, with offsets into the tensors."""
    a, b = te.placeholder((24,), name="A"), te.placeholder((24,), name="B")
    c = te.compute((24,), lambda i: a[i] + b[i], name="C")
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[0], factor=8)
    s[c].tensorize(inner, vector_add(8))
    x, y = random(24), random(24) * 2
    check(s, [a, b, c], [x, y], x + y, compiled=True)


def test_the_whole_reduction_in_the_body() -> None:
    """No loop of the reduction is outside: the body alone is used."""
    a, b, c = product()
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[1], factor=4)
    s[c].tensorize(inner, dot(4, 8, ("body",)))
    check(s, [a, b, c], *operands(), compiled=True)


@pytest.mark.parametrize("which", [("init", "update"), ("body", "update"), ("body", "init", "update")])
def test_a_loop_of_the_reduction_outside(which: tuple[str, ...]) -> None:
    """With a start and a continuation, or with the whole in the first iteration and the continuation after."""
    a, b, c = product()
    s = te.create_schedule(c.op)
    j_outer, j_inner = s[c].split(c.op.axis[1], factor=4)
    k_outer, k_inner = s[c].split(c.op.reduce_axis[0], factor=2)
    s[c].reorder(j_outer, k_outer, j_inner, k_inner)
    s[c].tensorize(j_inner, dot(4, 2, which))
    check(s, [a, b, c], *operands())


def test_data_loops_inside_of_the_reduction_loop() -> None:
    """The initialisation has loops of its own over the data axes that are inside the reduction."""
    a, b, c = product()
    s = te.create_schedule(c.op)
    j_outer, j_inner = s[c].split(c.op.axis[1], factor=4)
    k_outer, k_inner = s[c].split(c.op.reduce_axis[0], factor=2)
    s[c].reorder(k_outer, c.op.axis[0], j_outer, j_inner, k_inner)
    s[c].tensorize(j_inner, dot(4, 2, ("init", "update")))
    check(s, [a, b, c], *operands())


def test_a_cache_is_tensorised() -> None:
    """A stage computed at another's loop, with its own offsets."""
    a, b, c = product()
    s = te.create_schedule(c.op)
    cache = s.cache_write(c, "global")
    outer, _ = s[c].split(c.op.axis[1], factor=4)
    s[cache].compute_at(s[c], outer)
    s[cache].tensorize(s[cache].op.axis[1], dot(4, 8, ("body",)))
    check(s, [a, b, c], *operands())


def mismatch(schedule: te.Schedule, arguments: list[te.Tensor], *reasons: str) -> None:
    """Lowering refuses with stage, axis, intrinsic and reason."""
    with pytest.raises(ScheduleError) as caught:
        tvm.lower(schedule, arguments)
    for reason in ("tensorize on stage C, axis", *reasons):
        assert reason in str(caught.value)


def test_extents_must_be_the_same() -> None:
    """An axis longer or shorter than the intrinsic's."""
    a, b, c = product()
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[1], factor=3)
    s[c].tensorize(inner, dot(4, 8))
    mismatch(s, [a, b, c], "with dot", "axis j has extent 3 inside, the intrinsic wants 4")


def test_loops_that_do_not_divide_are_refused() -> None:
    """A guard cannot go into an intrinsic."""
    a, b, c = product(n=10)
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[1], factor=4)
    s[c].tensorize(inner, dot(4, 8))
    mismatch(s, [a, b, c], "do not divide")


def test_another_computation_is_refused() -> None:
    """The same shapes, another expression; another reduction; a reduction and none."""
    a, b = te.placeholder((24,), name="A"), te.placeholder((24,), name="B")
    c = te.compute((24,), lambda i: a[i] * b[i], name="C")
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[0], factor=8)
    s[c].tensorize(inner, vector_add(8))
    mismatch(s, [a, b, c], "the stage computes", "the intrinsic")

    x, y = te.placeholder((4, 8), name="A"), te.placeholder((12, 8), name="B")
    k = te.reduce_axis((0, 8), name="k")
    largest = te.compute((4, 12), lambda i, j: te.max(x[i, k] * y[j, k], axis=k), name="C")
    s = te.create_schedule(largest.op)
    _, inner = s[largest].split(largest.op.axis[1], factor=4)
    s[largest].tensorize(inner, dot(4, 8))
    mismatch(s, [x, y, largest], "combines in another way")

    plain = te.compute((4, 12), lambda i, j: x[i, 0] * y[j, 0], name="C")
    s = te.create_schedule(plain.op)
    _, inner = s[plain].split(plain.op.axis[1], factor=4)
    s[plain].tensorize(inner, dot(4, 8))
    mismatch(s, [x, y, plain], "reduces over k")


def test_a_part_that_is_missing() -> None:
    """A reduction around an intrinsic that has only a body."""
    a, b, c = product()
    s = te.create_schedule(c.op)
    j_outer, j_inner = s[c].split(c.op.axis[1], factor=4)
    k_outer, k_inner = s[c].split(c.op.reduce_axis[0], factor=2)
    s[c].reorder(j_outer, k_outer, j_inner, k_inner)
    s[c].tensorize(j_inner, dot(4, 2, ("body",)))
    mismatch(s, [a, b, c], "does not define reduce_update")


def test_loops_of_the_intrinsic_replace_those_of_the_stage() -> None:
    """From the tensorised axis inwards no loop of the stage is left."""
    a, b, c = product()
    s = te.create_schedule(c.op)
    _, inner = s[c].split(c.op.axis[1], factor=4)
    s[c].tensorize(inner, dot(4, 8))
    names = [one.loop_var.name for one in parts(tvm.driver.schedule_to_module(s, [a, b, c])["main"], tir.For)]
    assert sorted(names) == ["i", "i0", "i0", "i1", "j.outer"]


def test_an_intrinsic_may_depend_on_outer_loops() -> None:
    """A declaration with the guard of the last, partial tile, in terms of the outer axis, matches a cached stage whose
    guard is written in another way; what one call covers and computes can be asked."""
    x, y = te.placeholder((20,), name="x"), te.placeholder((20,), name="y")
    z = te.compute((20,), lambda i: x[i] + y[i], name="z")
    s = te.create_schedule(z.op)
    s[z].split(z.op.axis[0], factor=8)
    cached = s.cache_write(z, "global")
    outer, inner = cached.op.axis
    left, right = te.placeholder((8,), name="l"), te.placeholder((8,), name="r")
    declared = te.compute(
        (8,),
        lambda i: tir.Select(outer.var * 8 + i < 20, left[i] + right[i], tir.const(0, "float32")),
        name="d",
    )

    def emit(ins: list[tir.Buffer], outs: list[tir.Buffer]) -> tir.Stmt:
        return tir.Evaluate(tir.call_extern("int32", "add", *[one.access_ptr("rw") for one in (*ins, *outs)]))

    intrin = te.decl_tensor_intrin(
        declared.op, emit, name="guarded_add", default_buffer_params={"offset_factor": 1}
    )
    s[cached].tensorize(inner, intrin)
    assert "add" in str(tvm.lower(s, [x, y, z])["main"].body)
    normalized = s.normalize()
    stage = normalized[cached]
    infer = tvm.get_global_func("test.op.InferTensorizeRegion")
    box, inputs = infer(stage, te.schedule.InferBound(normalized))
    assert [box[axis].extent.value for axis in stage.op.axis] == [1, 8]
    assert [region[0].extent.value for region in inputs.values()] == [8, 8]
    (body,) = tvm.get_global_func("test.op.MatchTensorizeBody")(stage, box, inputs, intrin)
    outside = {outer.var: box[stage.op.axis[0]].min}
    wanted = tir.stmt_functor.substitute(declared.op.body[0], outside)
    assert tvm.ir.structural_equal(tvm.arith.Analyzer().simplify(body), tvm.arith.Analyzer().simplify(wanted))
