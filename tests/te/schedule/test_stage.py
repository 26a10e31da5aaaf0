"""The primitives of one stage: what each does to the axes, the loops and the result, and what each refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.te.schedule.checks import check, parts, random, refused

import tilewright as tvm
from tilewright import te, tir
from tilewright.ir.expr import IterVar
from tilewright.te.schedule.stage import AttachType
from tilewright.tir.stmt import ForKind


def rows() -> tuple[te.Tensor, te.Tensor, te.Schedule]:
    """A sum over the rows of a 7 by 13 matrix."""
    a = te.placeholder((7, 13), name="A")
    k = te.reduce_axis((0, 13), name="k")
    b = te.compute((7,), lambda i: te.sum(a[i, k], axis=k), name="B")
    return a, b, te.create_schedule(b.op)


def chain(extent: Any = 20) -> tuple[te.Tensor, te.Tensor, te.Tensor, te.Schedule]:
    """Two elementwise computations, one after the other."""
    a = te.placeholder((extent,), name="A")
    b = te.compute((extent,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((extent,), lambda i: b[i] * 2.0, name="C")
    return a, b, c, te.create_schedule(c.op)


def grid(m: Any = 6, n: Any = 10) -> tuple[te.Tensor, te.Tensor, te.Schedule]:
    """One elementwise computation over a matrix."""
    a = te.placeholder((m, n), name="A")
    b = te.compute((m, n), lambda i, j: a[i, j] * 3.0, name="B")
    return a, b, te.create_schedule(b.op)


# -- split ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(4,), (4, 3), (5, 2), (13,), (20,), (1,)])
def test_splits_that_do_not_divide_do_not_count_twice(sizes: tuple[int, ...]) -> None:
    """A reduction split again and again, with factors that do not divide, adds every element once."""
    a, b, s = rows()
    axis = b.op.reduce_axis[0]
    for size in sizes:
        _, axis = s[b].split(axis, factor=size)
    values = random(7, 13)
    check(s, [a, b], [values], values.sum(1))


@pytest.mark.parametrize("sizes", [(4,), (4, 3), (3, 5), (20,)])
def test_nparts_at_several_levels(sizes: tuple[int, ...]) -> None:
    """The same by the number of parts, on the outer axis each time."""
    a, b, s = rows()
    axis = b.op.reduce_axis[0]
    for size in sizes:
        axis, _ = s[b].split(axis, nparts=size)
    outer, _ = s[b].split(b.op.axis[0], nparts=3)
    assert outer.dom.extent.value == 3
    values = random(7, 13)
    check(s, [a, b], [values], values.sum(1))


def test_inner_splits_of_both_halves() -> None:
    """Both halves of a split are split again; elements past the end of either are left out."""
    a, b, s = rows()
    outer, inner = s[b].split(b.op.reduce_axis[0], factor=5)
    s[b].split(outer, factor=2)
    s[b].split(inner, factor=3)
    values = random(7, 13)
    check(s, [a, b], [values], values.sum(1))


def test_a_symbolic_extent_and_a_symbolic_factor() -> None:
    """The size of the axis and of the split are known when the program runs."""
    n, f = te.var("n"), te.var("f")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    s[b].split(b.op.axis[0], factor=f)
    values = random(23)
    for factor in (1, 4, 23, 50):
        result = np.zeros(23, "float32")
        tvm.build(s, [a, b, f], "llvm")(values, result, factor)
        np.testing.assert_allclose(result, values + 1)


def test_a_factor_larger_than_the_axis_shrinks() -> None:
    """No iteration is wasted on it."""
    a, b, s = grid(3, 4)
    s[b].split(b.op.axis[1], factor=64)
    loops = parts(tvm.lower(s, [a, b], simple_mode=True)["main"], tir.For)
    assert max(loop.extent.value for loop in loops) == 4


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "either factor or nparts"),
        ({"factor": 2, "nparts": 2}, "either factor or nparts"),
        ({"factor": 0}, "factor 0 is not positive"),
        ({"nparts": -3}, "nparts -3 is not positive"),
        ({"factor": 2.5}, "not an integer"),
        ({"factor": "two"}, "factor 'two'"),
        ({"factor": True}, "not an integer"),
    ],
)
def test_split_refuses(arguments: dict[str, Any], reason: str) -> None:
    """Sizes that are not sizes: stage, axis and reason are named."""
    _, b, s = grid()
    refused(s, lambda: s[b].split(b.op.axis[0], **arguments), "split on stage B, axis i", reason)


# -- fuse -------------------------------------------------------------------------------------------------------------


def test_fused_axes_are_split_and_reordered() -> None:
    """Three axes fused, split without dividing, and turned round."""
    a = te.placeholder((3, 5, 7), name="A")
    b = te.compute((3, 5, 7), lambda i, j, k: a[i, j, k] + 1.0, name="B")
    s = te.create_schedule(b.op)
    fused = s[b].fuse(*b.op.axis)
    assert fused.var.name == "i.j.fused.k.fused"
    outer, inner = s[b].split(fused, factor=11)
    s[b].reorder(inner, outer)
    values = random(3, 5, 7)
    check(s, [a, b], [values], values + 1)


def test_fused_reduction_axes() -> None:
    """Reduction axes are fused with one another, then split without dividing."""
    a = te.placeholder((4, 5, 3), name="A")
    j, k = te.reduce_axis((0, 5), name="j"), te.reduce_axis((0, 3), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, j, k], axis=[j, k]), name="B")
    s = te.create_schedule(b.op)
    s[b].split(s[b].fuse(j, k), factor=4)
    values = random(4, 5, 3)
    check(s, [a, b], [values], values.sum((1, 2)))


def test_fuse_of_parts_of_splits_that_do_not_divide() -> None:
    """The inner part of one split fused with the outer part of another."""
    a = te.placeholder((4, 7, 5), name="A")
    j, k = te.reduce_axis((0, 7), name="j"), te.reduce_axis((0, 5), name="k")
    b = te.compute((4,), lambda i: te.sum(a[i, j, k], axis=[j, k]), name="B")
    s = te.create_schedule(b.op)
    _, inner = s[b].split(j, factor=3)
    outer, _ = s[b].split(k, factor=2)
    s[b].fuse(inner, outer)
    values = random(4, 7, 5)
    check(s, [a, b], [values], values.sum((1, 2)))


def test_a_list_of_axes_is_taken_too() -> None:
    """``fuse([i, j])`` is ``fuse(i, j)``; nothing gives an axis of one iteration."""
    a, b, s = grid()
    fused = s[b].fuse(list(b.op.axis))
    assert s[b].leaf_iter_vars == [fused]
    single = s[b].fuse()
    assert s[b].leaf_iter_vars == [single, fused]
    values = random(6, 10)
    check(s, [a, b], [values], values * 3)


def test_fuse_refuses() -> None:
    """Axes apart, in the wrong order, of different kinds, of another stage, used up, or no axes."""
    a = te.placeholder((4, 5, 6), name="A")
    b = te.compute((4, 5, 6), lambda i, j, k: a[i, j, k], name="B")
    s = te.create_schedule(b.op)
    i, j, k = b.op.axis
    refused(s, lambda: s[b].fuse(i, k), "fuse on stage B, axis i", "the order is i, j, k")
    refused(s, lambda: s[b].fuse(j, i), "fuse on stage B, axis j", "outermost first")
    refused(s, lambda: s[b].fuse(i, i), "fuse on stage B, axis i")
    refused(s, lambda: s[b].fuse(i, "j"), "fuse on stage B, axis 'j'", "not an axis")
    s[b].split(i, factor=2)
    refused(s, lambda: s[b].fuse(i, j), "axis i", "split or fused already", "i.outer, i.inner, j, k")
    _, rows_b, rows_s = rows()
    refused(
        rows_s,
        lambda: rows_s[rows_b].fuse(rows_b.op.axis[0], rows_b.op.reduce_axis[0]),
        "fuse on stage B, axis i",
        "a reduction axis and a data axis",
    )


# -- reorder and tile -------------------------------------------------------------------------------------------------


def test_reorder_uses_the_places_of_its_axes() -> None:
    """Axes that are not named stay where they are."""
    a = te.placeholder((2, 3, 4), name="A")
    b = te.compute((2, 3, 4), lambda i, j, k: a[i, j, k], name="B")
    s = te.create_schedule(b.op)
    i, j, k = b.op.axis
    s[b].reorder(k, i)
    assert s[b].leaf_iter_vars == [k, j, i]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1), (3, 2, 1, 0), (2, 3, 0, 1), (1, 3, 0, 2)])
def test_reductions_in_any_order(order: tuple[int, ...]) -> None:
    """Data and reduction loops may stand in any order: the initialisation still comes first."""
    a, b, s = rows()
    axes = [*s[b].split(b.op.axis[0], factor=2), *s[b].split(b.op.reduce_axis[0], factor=4)]
    s[b].reorder(*[axes[index] for index in order])
    values = random(7, 13)
    check(s, [a, b], [values], values.sum(1))


def test_reorder_refuses() -> None:
    """An axis named twice or of another stage."""
    a, b, c, s = chain()
    i = c.op.axis[0]
    outer, _ = s[c].split(i, factor=4)
    refused(s, lambda: s[c].reorder(outer, outer), "reorder on stage C, axis i.outer", "named twice")
    refused(
        s,
        lambda: s[c].reorder(b.op.axis[0], outer),
        "reorder on stage C, axis i",
        "not an axis of this stage",
    )
    assert a.op in s


def test_tile() -> None:
    """Tiles are two splits and an order; the trace shows these three steps."""
    a, b, s = grid()
    leaves = s[b].tile(*b.op.axis, 4, 3)
    assert s[b].leaf_iter_vars == list(leaves)
    assert [step.primitive for step in s.trace] == ["split", "split", "reorder"]
    values = random(6, 10)
    check(s, [a, b], [values], values * 3)


def test_tile_refuses_as_a_whole() -> None:
    """A bad second factor leaves the first axis whole."""
    _, b, s = grid()
    i, j = b.op.axis
    refused(s, lambda: s[b].tile(i, j, 4, 0), "tile on stage B, axis j", "y_factor 0 is not positive")
    refused(s, lambda: s[b].tile(i, i, 4, 4), "tile on stage B, axis i", "two different axes")


# -- annotations ------------------------------------------------------------------------------------------------------


def test_annotations_give_kinds_of_loops() -> None:
    """Parallel, vectorised and unrolled loops."""
    a, b, s = grid(6, 16)
    i, j = b.op.axis
    outer, inner = s[b].split(j, factor=8)
    s[b].parallel(i)
    s[b].unroll(outer)
    s[b].vectorize(inner)
    loops = parts(tvm.driver.schedule_to_module(s, [a, b])["main"], tir.For)
    assert [loop.kind for loop in loops] == [ForKind.PARALLEL, ForKind.UNROLLED, ForKind.VECTORIZED]
    types = [s[b].iter_var_attrs[axis].iter_type for axis in (i, outer, inner)]
    assert types == [IterVar.Parallelized, IterVar.Unrolled, IterVar.Vectorized]
    values = random(6, 16)
    check(s, [a, b], [values], values * 3)


def test_vectorised_loops_that_do_not_divide() -> None:
    """Lanes past the end are left out."""
    a, b, s = grid(3, 10)
    _, inner = s[b].split(b.op.axis[1], factor=8)
    s[b].vectorize(inner)
    values = random(3, 10)
    check(s, [a, b], [values], values * 3)


def test_a_reduction_axis_runs_one_after_another() -> None:
    """It is not vectorised and not parallel, but may be unrolled."""
    a, b, s = rows()
    k = b.op.reduce_axis[0]
    refused(s, lambda: s[b].vectorize(k), "vectorize on stage B, axis k", "rfactor")
    refused(s, lambda: s[b].parallel(k), "parallel on stage B, axis k", "depend on one another")
    s[b].unroll(k)
    values = random(7, 13)
    check(s, [a, b], [values], values.sum(1))


def test_a_loop_of_unknown_length_has_no_lanes() -> None:
    """It stays a loop, and the result is right."""
    n = te.var("n")
    a, b, s = grid(4, n)
    s[b].vectorize(b.op.axis[1])
    values = random(4, 9)
    check(s, [a, b], [values], values * 3)


def test_pragma() -> None:
    """A pragma stands around its loop; one named again takes the new value; two of them change the loop."""
    a, b, s = grid()
    i, j = b.op.axis
    s[b].pragma(i, "auto_unroll_max_step", 4)
    s[b].pragma(i, "auto_unroll_max_step", 8)
    s[b].pragma(j, "unroll")
    s[b].pragma(i, "import_text", "text")
    attributes = s[b].iter_var_attrs[i]
    assert attributes.pragma_keys == ("auto_unroll_max_step", "import_text")
    assert [value.value for value in attributes.pragma_values] == [8, "text"]
    loops = tvm.driver.schedule_to_module(s, [a, b])["main"]
    pragmas = [one for one in parts(loops, tir.AttrStmt) if one.attr_key.startswith("pragma_")]
    assert {one.attr_key: one.value.value for one in pragmas} == {
        "pragma_auto_unroll_max_step": 8,
        "pragma_import_text": "text",
    }
    assert [loop.kind for loop in parts(loops, tir.For)] == [ForKind.SERIAL, ForKind.UNROLLED]
    refused(s, lambda: s[b].pragma(te.reduce_axis((0, 2), name="r"), "unroll"), "pragma on stage B, axis r")
    refused(s, lambda: s[b].pragma(i, 3), "pragma on stage B, axis i", "name of a pragma")  # type: ignore[arg-type]
    s[b].pragma(j, "vectorize")
    assert s[b].iter_var_attrs[j].iter_type == IterVar.Vectorized and not s[b].iter_var_attrs[j].pragma_keys


def test_prefetch() -> None:
    """What later iterations read is prefetched; the result stays."""
    a, b, s = grid(16, 32)
    s[b].prefetch(a, b.op.axis[0], 2)
    assert s[b].iter_var_attrs[b.op.axis[0]].prefetch_data == (a,)
    assert s[b].iter_var_attrs[b.op.axis[0]].prefetch_offset[0].value == 2
    assert "prefetch" in str(tvm.lower(s, [a, b]))
    values = random(16, 32)
    check(s, [a, b], [values], values * 3)
    refused(s, lambda: s[b].prefetch("A", b.op.axis[0], 1), "prefetch on stage B, axis i", "not a tensor")  # type: ignore[arg-type]
    refused(s, lambda: s[b].prefetch(a, b.op.axis[0], 1.5), "prefetch on stage B, axis i", "not an integer")


# -- threads ----------------------------------------------------------------------------------------------------------


def test_bind_refuses() -> None:
    """No thread axis, a tag of no thread, a thread that another axis of the stage has, an axis that is bound."""
    _, b, s = grid()
    i, j = b.op.axis
    thread = te.thread_axis("threadIdx.x")
    refused(s, lambda: s[b].bind(i, j), "bind on stage B, axis i", "j is not a thread axis")
    refused(s, lambda: s[b].bind(i, te.thread_axis("thread.x")), "bind on stage B, axis i", "'thread.x'")
    s[b].bind(i, thread)
    refused(
        s,
        lambda: s[b].bind(j, te.thread_axis("threadIdx.x")),
        "bind on stage B, axis j",
        "bound to threadIdx.x",
    )
    refused(s, lambda: s[b].split(i, factor=2), "split on stage B, axis i", "bound to a thread")
    refused(s, lambda: s[b].fuse(i, j), "fuse on stage B, axis i", "bound to a thread")
    refused(s, lambda: s[b].vectorize(i), "vectorize on stage B, axis i", "bound to a thread")


def test_extents_of_one_thread_must_agree() -> None:
    """Two stages on one thread axis with different extents: lowering names stage, axis and both extents."""
    a, b, c, s = chain(64)
    thread, block = te.thread_axis("threadIdx.x"), te.thread_axis("blockIdx.x")
    outer, inner = s[c].split(c.op.axis[0], factor=16)
    s[c].bind(outer, block)
    s[c].bind(inner, thread)
    s[b].compute_at(s[c], outer)
    s[b].set_scope("shared")
    _, few = s[b].split(b.op.axis[0], factor=4)
    s[b].bind(few, thread)
    with pytest.raises(tvm.TVMError, match=r"bind on stage B, axis i\.inner.*extent 4.*16.*threadIdx\.x"):
        tvm.lower(s, [a, c])


def test_env_threads() -> None:
    """Threads around a whole stage; an axis that is none is refused."""
    a, b, s = grid(4, 5)
    thread = te.thread_axis((0, 1), "threadIdx.x")
    s[b].env_threads([thread])
    attributes = parts(tvm.driver.schedule_to_module(s, [a, b])["main"], tir.AttrStmt)
    assert [(one.attr_key, one.node.thread_tag) for one in attributes] == [("thread_extent", "threadIdx.x")]
    refused(s, lambda: s[b].env_threads(b.op.axis[0]), "env_threads on stage B, axis i", "not a thread axis")
    refused(s, lambda: s[b].env_threads("threadIdx.x"), "env_threads on stage B", "not a thread axis")  # type: ignore[arg-type]


def test_set_store_predicate() -> None:
    """Elements are stored only where the condition holds."""
    a, b, s = grid(4, 5)
    refused(
        s,
        lambda: s[b].set_store_predicate(b.op.axis[0].var),
        "set_store_predicate on stage B",
        "must be bool",
    )
    s[b].set_store_predicate(a[0, 0] > 0)
    for first, stored in ((1.0, True), (-1.0, False)):
        values, result = np.full((4, 5), first, "float32"), np.full((4, 5), 9, "float32")
        tvm.build(s, [a, b], "llvm")(values, result)
        assert (result == (3.0 if stored else 9.0)).all()


# -- memory -----------------------------------------------------------------------------------------------------------


def test_set_scope() -> None:
    """The scope is where the result is kept; an output that the caller takes lives in global memory."""
    a, b, c, s = chain()
    s[b].set_scope("local")
    allocations = parts(tvm.lower(s, [a, c])["main"], tir.Allocate)
    assert [one.buffer_var.type_annotation.storage_scope for one in allocations] == ["local"]
    refused(s, lambda: s[b].set_scope(3), "set_scope on stage B", "3 is not the name")  # type: ignore[arg-type]
    s[c].set_scope("shared")
    refused(s, lambda: tvm.lower(s, [a, c]), "set_scope on stage C", "global memory, not in 'shared'")


def test_storage_align() -> None:
    """Strides become a multiple of the factor plus the offset."""
    a = te.placeholder((6, 10), name="A")
    b = te.compute((6, 10), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((6, 10), lambda i, j: b[i, j] * 2.0, name="C")
    s = te.create_schedule(c.op)
    s[b].storage_align(b.op.axis[0], 8, 3)
    assert s[b].iter_var_attrs[b.op.axis[0]].dim_align_factor == 8
    assert s[b].iter_var_attrs[b.op.axis[0]].dim_align_offset == 3
    (allocation,) = parts(tvm.lower(s, [a, c])["main"], tir.Allocate)
    assert [extent.value for extent in allocation.extents] == [6 * 11]
    values = random(6, 10)
    check(s, [a, c], [values], (values + 1) * 2)


def test_storage_align_refuses() -> None:
    """Factors that are not numbers, and axes that have no stride."""
    a, b, s = rows()
    refused(s, lambda: s[b].storage_align(b.op.axis[0], 0, 1), "storage_align on stage B, axis i", "factor 0")
    refused(s, lambda: s[b].storage_align(b.op.axis[0], "x", 1), "storage_align on stage B, axis i", "'x'")  # type: ignore[arg-type]
    refused(s, lambda: s[b].storage_align(a.op, 8, 0), "storage_align on stage B")  # type: ignore[arg-type]
    refused(
        s,
        lambda: s[b].storage_align(b.op.reduce_axis[0], 8, 0),
        "storage_align on stage B, axis k",
        "no stride",
    )
    outer, _ = s[b].split(b.op.axis[0], factor=2)
    refused(s, lambda: s[b].storage_align(outer, 8, 0), "storage_align on stage B, axis i.outer", "no stride")


def test_double_buffer() -> None:
    """Twice the memory, and the right result."""
    a, b, c, s = chain(24)
    outer, _ = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], outer)
    (single,) = parts(tvm.lower(s, [a, c])["main"], tir.Allocate)
    s[b].double_buffer()
    (double,) = parts(tvm.lower(s, [a, c])["main"], tir.Allocate)
    size = np.prod([extent.value for extent in single.extents])
    assert np.prod([extent.value for extent in double.extents]) == 2 * size
    values = random(24)
    check(s, [a, c], [values], (values + 1) * 2)
    refused(s, lambda: s[c].double_buffer(), "double_buffer on stage C", "an output")


def test_double_buffer_of_a_pair_is_refused() -> None:
    """A stage with two outputs cannot be double-buffered."""
    a = te.placeholder((8,), name="A")
    one, two = te.compute((8,), lambda i: (a[i], a[i] * 2.0), name="T")
    c = te.compute((8,), lambda i: one[i] + two[i], name="C")
    s = te.create_schedule(c.op)
    refused(s, lambda: s[one].double_buffer(), "double_buffer on stage T", "one output")


# -- place ------------------------------------------------------------------------------------------------------------


def stencil(size: Any) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Windows of three by three over a sum, which two offsets read."""
    a = te.placeholder((size, size), name="A")
    b = te.compute((size, size), lambda i, j: a[i, j] + 1.0, name="B")
    c = te.compute((size - 2, size - 2), lambda i, j: b[i, j] + b[i + 1, j + 2] * b[i + 2, j], name="C")
    return a, b, c


@pytest.mark.parametrize("position", range(5))
@pytest.mark.parametrize("symbolic", [False, True])
def test_compute_at_every_axis(position: int, symbolic: bool) -> None:
    """A producer with overlapping reads is right at every loop of its reader, split and fused ones included."""
    a, b, c = stencil(te.var("n") if symbolic else 12)
    s = te.create_schedule(c.op)
    i, j = c.op.axis
    i_outer, i_inner = s[c].split(i, factor=4)
    j_outer, j_inner = s[c].split(j, nparts=3)
    middle, last = s[c].split(j_inner, factor=3)
    s[c].reorder(i_outer, j_outer, middle, i_inner, last)
    s[b].compute_at(s[c], s[c].leaf_iter_vars[position])
    values = random(12, 12)
    plus = values + 1
    check(s, [a, c], [values], plus[:-2, :-2] + plus[1:-1, 2:] * plus[2:, :-2])


def test_compute_at_holds_no_more_than_it_needs() -> None:
    """At the row loop, three rows are kept."""
    a, b, c = stencil(12)
    s = te.create_schedule(c.op)
    s[b].compute_at(s[c], c.op.axis[0])
    (allocation,) = parts(tvm.lower(s, [a, c])["main"], tir.Allocate)
    assert np.prod([extent.value for extent in allocation.extents]) == 3 * 12


@pytest.mark.parametrize("inner", [False, True])
def test_compute_at_inside_of_a_reduction(inner: bool) -> None:
    """A producer at a loop of its reader's reduction, over which it changes."""
    a = te.placeholder((5, 11), name="A")
    b = te.compute((5, 11), lambda i, j: a[i, j] * a[i, j], name="B")
    k = te.reduce_axis((0, 11), name="k")
    c = te.compute((5,), lambda i: te.sum(b[i, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    place = s[c].split(k, factor=4)[inner]
    s[b].compute_at(s[c], place)
    values = random(5, 11)
    check(s, [a, c], [values], (values * values).sum(1))


def test_compute_at_of_a_chain_and_of_a_reduction() -> None:
    """Producers of producers, one of them a reduction, each at its own place."""
    a = te.placeholder((6, 9), name="A")
    b = te.compute((6, 9), lambda i, j: a[i, j] + 1.0, name="B")
    k = te.reduce_axis((0, 9), name="k")
    total = te.compute((6,), lambda i: te.sum(b[i, k], axis=k), name="T")
    d = te.compute((6, 9), lambda i, j: a[i, j] * total[i], name="D")
    s = te.create_schedule(d.op)
    s[total].compute_at(s[d], d.op.axis[0])
    s[b].compute_at(s[total], k)
    values = random(6, 9)
    check(s, [a, d], [values], values * (values + 1).sum(1, keepdims=True))


def test_several_readers() -> None:
    """A stage whose readers all lie inside the place may be there; one that does not is an error."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((8,), lambda i: b[i] * 2.0, name="C")
    d = te.compute((8,), lambda i: b[i] + c[i], name="D")
    s = te.create_schedule(d.op)
    s[c].compute_at(s[d], d.op.axis[0])
    s[b].compute_at(s[d], d.op.axis[0])
    values = random(8)
    check(s, [a, d], [values], (values + 1) * 3)
    s = te.create_schedule(d.op)
    s[b].compute_at(s[d], d.op.axis[0])
    with pytest.raises(tvm.TVMError, match="compute_at on stage B: its reader C is not inside D at axis i"):
        tvm.lower(s, [a, d])


def test_compute_at_refuses() -> None:
    """Itself, an output, an axis that is gone, a circle, or no stage at all."""
    a, b, c, s = chain()
    i = c.op.axis[0]
    refused(s, lambda: s[b].compute_at(s[b], b.op.axis[0]), "compute_at on stage B, axis i", "itself")
    refused(s, lambda: s[c].compute_at(s[b], b.op.axis[0]), "compute_at on stage C, axis i", "an output")
    refused(s, lambda: s[b].compute_at(c, i), "compute_at on stage B, axis i", "not a stage")  # type: ignore[arg-type]
    s[c].split(i, factor=4)
    refused(s, lambda: s[b].compute_at(s[c], i), "compute_at on stage B, axis i", "i.outer, i.inner")
    cache = s.cache_read(a, "local", [b])
    s[b].compute_at(s[cache], cache.op.axis[0])
    refused(
        s,
        lambda: s[cache].compute_at(s[b], b.op.axis[0]),
        "compute_at on stage A.local, axis i",
        "stage B is itself computed inside",
    )


def test_compute_inline_and_root() -> None:
    """The expression goes into its readers; going back to the root undoes it."""
    a, b, c, s = chain()
    s[b].compute_inline()
    assert s[b].attach_type == AttachType.INLINE
    assert len(parts(tvm.lower(s, [a, c], simple_mode=True)["main"], tir.For)) == 1
    values = random(20)
    check(s, [a, c], [values], (values + 1) * 2)
    s[b].compute_root()
    assert s[b].attach_type == AttachType.GROUP_ROOT
    assert len(parts(tvm.lower(s, [a, c], simple_mode=True)["main"], tir.For)) == 2


def test_compute_inline_refuses() -> None:
    """An output, a reduction, an input."""
    a, b, s = rows()
    refused(s, lambda: s[b].compute_inline(), "compute_inline on stage B", "an output")
    refused(s, lambda: s[a].compute_inline(), "compute_inline on stage A", "only a computation")
    c = te.compute((7,), lambda i: b[i] + 1.0, name="C")
    s = te.create_schedule(c.op)
    refused(s, lambda: s[b].compute_inline(), "compute_inline on stage B", "a reduction")


def test_tensorize_refuses_what_is_no_intrinsic() -> None:
    """The message says how to make one."""
    _, b, s = grid()
    refused(
        s, lambda: s[b].tensorize(b.op.axis[0], "gemm"), "tensorize on stage B, axis i", "decl_tensor_intrin"
    )


def test_bind_to_a_pipeline_is_a_loop() -> None:
    """The tag of pipelined hardware is not a thread: the axis stays a loop."""
    a, b, s = grid()
    s[b].bind(b.op.axis[0], te.thread_axis("pipeline"))
    values = random(6, 10)
    check(s, [a, b], [values], values * 3)
