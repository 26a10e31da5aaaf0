"""Loops are split so that likely conditions need no check in most iterations; results never change."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tvm
from tilewright import te, tir
from tilewright.ir.module import IRModule
from tilewright.ir.transform import PassContext
from tilewright.tir.interpreter import interpret
from tilewright.tir.op import likely
from tilewright.tir.transform.loop_partition import LoopPartition, partition_loops
from tilewright.tir.transform.simplify import Simplify

CONSTANT = {"tir.LoopPartition": {"partition_const_loop": True}}


def split_loop(n, factor, outer_kind="serial", inner_kind="serial"):
    """for o, for i: if likely(o * factor + i < n): A[o * factor + i] += 1"""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    count = (n + factor - 1) // factor
    with (
        builder.for_range(0, count, name="o", kind=outer_kind) as o,
        builder.for_range(0, factor, name="i", kind=inner_kind) as i,
        builder.if_scope(likely(o * factor + i < n)),
    ):
        a[o * factor + i] = a[o * factor + i] + 1
    scalars = [n] if isinstance(n, tir.Var) else []
    return tir.PrimFunc([a.asobject(), *scalars], builder.get())


def test_symbolic_extent(apply, agree, nodes_of):
    """A split of an unknown length runs unguarded up to the last tile, and guarded in it."""
    n = tir.SizeVar("n", "int32")
    before = split_loop(n, 4)
    after = apply(before, LoopPartition(), Simplify())
    main, rest = after.body.seq
    assert not nodes_of(main, tir.IfThenElse) and nodes_of(rest, tir.IfThenElse)
    assert repr(main.extent) == "n // 4"
    for length in (0, 3, 4, 17):
        agree(before, after, np.arange(length, dtype="int32"), length)


def test_constant_loops_only_where_asked(apply, agree, nodes_of):
    """A loop of constant extent stays whole by default; with the option no guard is left."""
    before = split_loop(18, 4)
    assert apply(before, LoopPartition()).body is before.body
    with PassContext(config=CONSTANT):
        after = apply(before, LoopPartition(), Simplify())
    assert not nodes_of(after.body, tir.IfThenElse)
    assert [loop.extent.value for loop in nodes_of(after.body, tir.For)] == [4, 4, 2]
    agree(before, after, np.arange(18, dtype="int32"))


def test_field_stands_for_the_missing_option(apply, nodes_of):
    """``LoopPartition(constant_loops=True)`` splits constant loops unless the context says otherwise."""
    before = split_loop(18, 4)
    assert not nodes_of(apply(before, LoopPartition(True), Simplify()).body, tir.IfThenElse)
    with PassContext(config={"tir.LoopPartition": {"partition_const_loop": False}}):
        assert apply(before, LoopPartition(True)).body is before.body


def test_vectorized_tail_has_fewer_lanes(apply, agree, nodes_of):
    """The last tile of a vectorized loop is a shorter vectorized loop, without a guard."""
    before = split_loop(22, 8, inner_kind="vectorize")
    with PassContext(config=CONSTANT):
        after = apply(before, LoopPartition(), Simplify())
    assert not nodes_of(after.body, tir.IfThenElse)
    vectorized = [
        loop.extent.value for loop in nodes_of(after.body, tir.For) if loop.kind == tir.ForKind.VECTORIZED
    ]
    assert vectorized == [8, 6]
    agree(before, after, np.arange(22, dtype="int32"))


def test_parallel_loop_stays_one(apply, agree, nodes_of):
    """A parallel loop keeps its iterations; a branch inside picks the body without checks, with constant loops."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with (
        builder.for_range(0, 2, name="p", kind="parallel") as p,
        builder.for_range(0, 4, name="o") as o,
        builder.for_range(0, 8, name="i", kind="vectorize") as i,
        builder.if_scope(likely(p * 32 + o * 8 + i < 52)),
    ):
        a[p * 32 + o * 8 + i] = a[p * 32 + o * 8 + i] + 1
    before = tir.PrimFunc([a.asobject()], builder.get())
    with PassContext(config=CONSTANT):
        after = apply(before, LoopPartition(), Simplify())
    assert isinstance(after.body, tir.For) and after.body.kind == tir.ForKind.PARALLEL
    assert after.body.extent.value == 2
    (branch,) = nodes_of(after.body, tir.IfThenElse)
    assert after.body.body is branch and repr(branch.condition) == "p < 1"
    assert branch.then_case.extent.value == 4 and branch.then_case.body.extent.value == 8
    extents = [loop.extent.value for loop in nodes_of(branch.else_case, tir.For)]
    assert extents == [8, 2, 4]
    agree(before, after, np.arange(52, dtype="int32"))


def test_parallel_loop_that_two_were_fused_to(apply, agree, nodes_of):
    """A condition on the outer one of the fused loops picks the body by a quotient; the rest knows its value."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with (
        builder.for_range(0, 15, name="p", kind="parallel") as p,
        builder.for_range(0, 4, name="k") as k,
        builder.for_range(0, 3, name="u", kind="unroll") as u,
        builder.if_scope(likely(p // 5 * 3 + u < 8)),
    ):
        a[p // 5 * 15 + u * 5 + p % 5] = a[p // 5 * 15 + u * 5 + p % 5] + k
    before = tir.PrimFunc([a.asobject()], builder.get())
    with PassContext(config=CONSTANT):
        after = apply(before, LoopPartition(), Simplify())
    assert isinstance(after.body, tir.For) and after.body.extent.value == 15
    (branch,) = nodes_of(after.body, tir.IfThenElse)
    assert after.body.body is branch and repr(branch.condition) == "p < 10"
    assert [loop.extent.value for loop in nodes_of(branch.then_case, tir.For)] == [3, 4]
    assert [loop.extent.value for loop in nodes_of(branch.else_case, tir.For)] == [2, 4]
    agree(before, after, np.arange(40, dtype="int32"))


def test_parallel_loop_with_a_condition_on_the_inner_of_two(apply, agree, nodes_of):
    """A condition on the inner one of the fused loops picks the body by a remainder."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with (
        builder.for_range(0, 12, name="p", kind="parallel") as p,
        builder.for_range(0, 8, name="i", kind="vectorize") as i,
        builder.if_scope(likely(p % 4 * 8 + i < 27)),
    ):
        a[p // 4 * 27 + p % 4 * 8 + i] = p
    before = tir.PrimFunc([a.asobject()], builder.get())
    with PassContext(config=CONSTANT):
        after = apply(before, LoopPartition(), Simplify())
    (branch,) = nodes_of(after.body, tir.IfThenElse)
    assert repr(branch.condition) == "p % 4 < 3"
    assert [loop.extent.value for loop in nodes_of(branch.else_case, tir.For)] == [3]
    agree(before, after, np.zeros(81, dtype="int32"))


def test_parallel_loop_with_a_condition_on_the_middle_of_three(apply, agree, nodes_of):
    """A condition on the middle one of the fused loops is outside of the loops in the body."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with (
        builder.for_range(0, 30, name="p", kind="parallel") as p,
        builder.for_range(0, 4, name="k") as k,
        builder.for_range(0, 3, name="u", kind="unroll") as u,
        builder.if_scope(likely(p % 15 // 5 * 3 + u < 8)),
    ):
        index = p // 15 * 40 + p % 15 // 5 * 15 + u * 5 + p % 5
        a[index] = a[index] + k
    before = tir.PrimFunc([a.asobject()], builder.get())
    with PassContext(config=CONSTANT):
        after = apply(before, LoopPartition(), Simplify())
    (branch,) = nodes_of(after.body, tir.IfThenElse)
    assert after.body.body is branch
    assert [loop.extent.value for loop in nodes_of(branch.then_case, tir.For)] == [3, 4]
    assert [loop.extent.value for loop in nodes_of(branch.else_case, tir.For)] == [2, 4]
    agree(before, after, np.arange(80, dtype="int32"))


def test_parallel_loop_with_a_condition_on_two_parts_stays(apply, agree, nodes_of):
    """A condition on quotient and remainder together has no bound on one of them that is constant: it is checked."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with (
        builder.for_range(0, 12, name="p", kind="parallel") as p,
        builder.if_scope(likely(p // 4 * 3 + p % 4 < 8)),
    ):
        a[p // 4 * 3 + p % 4] = 1
    before = tir.PrimFunc([a.asobject()], builder.get())
    with PassContext(config=CONSTANT):
        after = apply(before, LoopPartition(), Simplify())
    assert len(nodes_of(after.body, tir.Store)) == 1
    agree(before, after, np.zeros(8, dtype="int32"))


@pytest.mark.parametrize("length", [0, 5, 8, 21, 64])
def test_parallel_loop_of_unknown_length(apply, agree, nodes_of, length):
    """With an unknown length the branch compares with the number of whole tiles."""
    n = tir.SizeVar("n", "int32")
    before = split_loop(n, 8, "parallel", "vectorize")
    after = apply(before, LoopPartition(), Simplify())
    assert repr(after.body.body.condition) == "o < n // 8"
    assert isinstance(after.body.body.then_case.body, tir.Store)
    agree(before, after, np.arange(length, dtype="int32"), length)


def test_loop_guarded_as_a_whole_gets_shorter(apply, agree, nodes_of):
    """A condition on one loop alone, around all of its body, becomes the loop's bound; nothing is written twice."""
    n, m = tir.SizeVar("n", "int32"), tir.SizeVar("m", "int32")
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with builder.for_range(0, n, name="i") as i, builder.if_scope(tir.all(likely(i >= 2), likely(i * 2 < m))):
        a[i] = 1
    before = tir.PrimFunc([a.asobject(), n, m], builder.get())
    after = apply(before, LoopPartition(), Simplify())
    assert isinstance(after.body, tir.For) and isinstance(after.body.body, tir.Store)
    for length, limit in ((6, 8), (6, 100), (6, 0), (1, 9), (0, 3)):
        agree(before, after, np.zeros(length, "int32"), length, limit)


def test_condition_that_cannot_be_solved_stays(apply, agree, nodes_of):
    """Beside a condition that shortens the loop, one that is not linear in it is still checked."""
    n = tir.SizeVar("n", "int32")
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with builder.for_range(0, n, name="i") as i, builder.if_scope(tir.all(likely(i < 9), likely(i % 3 < 2))):
        a[i] = 1
    before = tir.PrimFunc([a.asobject(), n], builder.get())
    after = apply(before, LoopPartition(), Simplify())
    (branch,) = nodes_of(after.body, tir.IfThenElse)
    assert repr(branch.condition) == "T.likely(i % 3 < 2)"
    for length in (0, 5, 12):
        agree(before, after, np.zeros(length, "int32"), length)


def test_iterations_in_which_nothing_can_hold_are_left_out(apply, agree, nodes_of):
    """A condition that also depends on an inner loop still ends the loop where no inner iteration can hold."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with (
        builder.for_range(0, 9, name="i") as i,
        builder.for_range(0, 4, name="j") as j,
        builder.if_scope(likely(i * 4 + j < 14)),
    ):
        a[i * 4 + j] = 1
    before = tir.PrimFunc([a.asobject()], builder.get())
    with PassContext(config=CONSTANT):
        after = apply(before, LoopPartition(), Simplify())
    assert not nodes_of(after.body, tir.IfThenElse)
    assert [loop.extent.value for loop in nodes_of(after.body, tir.For)] == [4, 3, 2]
    agree(before, after, np.zeros(14, "int32"))


def test_lower_and_upper_conditions(apply, agree, nodes_of):
    """Conditions from both sides give a part before, a part within and a part after."""
    n = tir.SizeVar("n", "int32")
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with (
        builder.for_range(0, n, name="i") as i,
        builder.for_range(0, 4, name="j") as j,
        builder.if_scope(tir.all(likely(i + j >= 3), likely(i + j < 9))),
    ):
        a[i] = a[i] + i + j
    before = tir.PrimFunc([a.asobject(), n], builder.get())
    after = apply(before, LoopPartition(), Simplify())
    assert len(after.body.seq) == 3
    assert [bool(nodes_of(part, tir.IfThenElse)) for part in after.body.seq] == [True, False, True]
    for length in (0, 2, 4, 7, 12):
        agree(before, after, np.zeros(length, "int32"), length)


def test_condition_with_else(apply, agree, nodes_of):
    """An else branch belongs to the iterations outside; the loop is split, not shortened."""
    n = tir.SizeVar("n", "int32")
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with builder.for_range(0, n, name="i") as i:
        with builder.if_scope(likely(i < 5)):
            a[i] = 1
        with builder.else_scope():
            a[i] = 2
    before = tir.PrimFunc([a.asobject(), n], builder.get())
    after = apply(before, LoopPartition(), Simplify())
    for length in (0, 3, 5, 8):
        agree(before, after, np.zeros(length, "int32"), length)
    assert not nodes_of(after.body[0], tir.IfThenElse)


def test_likely_inside_a_value(apply, agree, nodes_of):
    """A likely condition of a selection is decided in the same way."""
    n = tir.SizeVar("n", "int32")
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with builder.for_range(0, n, name="i") as i:
        a[i] = tir.Select(likely(i < 5), 1, 2)
    before = tir.PrimFunc([a.asobject(), n], builder.get())
    after = apply(before, LoopPartition(), Simplify())
    assert not nodes_of(after.body[0], tir.Select)
    for length in (0, 3, 5, 8):
        agree(before, after, np.zeros(length, "int32"), length)


def test_unlikely_conditions_stay(apply):
    """A condition without ``likely`` is not touched, but for a loop with the hint."""
    n = tir.SizeVar("n", "int32")
    a, i = tir.Var("A", "handle"), tir.Var("i", "int32")
    loop = tir.For(i, 0, n, 0, tir.IfThenElse(i < 5, tir.Store(a, 1, i)))
    before = tir.PrimFunc([a, n], loop)
    assert apply(before, LoopPartition()).body is loop
    hinted = tir.AttrStmt(i, "pragma_loop_partition_hint", 1, loop)
    after = apply(before.with_body(hinted), LoopPartition(), Simplify())
    assert isinstance(after.body.body, tir.Store)


def test_single_iterations_may_stay_loops():
    """``no_unroll_loop_with_extent_one`` keeps a loop around a part of one iteration."""
    stmt = split_loop(18, 4).body
    kept = partition_loops(stmt, True, True)
    assert isinstance(kept[1], tir.For) and kept[1].extent.value == 1
    assert partition_loops(stmt, True, False)[1].loop_var.name == "i"


def test_thread_index(apply, nodes_of):
    """Under a thread index of unknown extent the body stands twice, once without the checks."""
    n = tir.SizeVar("n", "int32")
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    block = tir.IterVar((0, (n + 3) // 4), "blockIdx.x", 1, "blockIdx.x")
    thread = tir.IterVar((0, 4), "threadIdx.x", 1, "threadIdx.x")
    builder.scope_attr(block, "thread_extent", (n + 3) // 4)
    builder.scope_attr(thread, "thread_extent", 4)
    with builder.if_scope(likely(block.var * 4 + thread < n)):
        a[block.var * 4 + thread] = 1
    after = apply(tir.PrimFunc([a.asobject(), n], builder.get()), LoopPartition(), Simplify())
    branch = after.body.body.body
    assert isinstance(branch, tir.IfThenElse)
    assert isinstance(branch.then_case, tir.Store) and nodes_of(branch.else_case, tir.IfThenElse)


def test_constant_loops_of_threads_stay_by_default(apply, nodes_of):
    """What holds for the missing option does not hold under a thread index; the option itself does."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    thread = tir.IterVar((0, 4), "threadIdx.x", 1, "threadIdx.x")
    builder.scope_attr(thread, "thread_extent", 4)
    with builder.for_range(0, 4, name="i") as i, builder.if_scope(likely(thread.var * 4 + i < 14)):
        a[thread.var * 4 + i] = 1
    before = tir.PrimFunc([a.asobject()], builder.get())
    assert apply(before, LoopPartition(True)).body is before.body
    with PassContext(config=CONSTANT):
        assert apply(before, LoopPartition(True)).body is not before.body


@settings(max_examples=60)
@given(
    n=st.integers(1, 40),
    m=st.integers(1, 40),
    tile=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 5)),
    constant=st.booleans(),
)
def test_two_dimensional_tiles(n, m, tile, constant):
    """Whatever the tile sizes, every element is written exactly once."""
    rows, columns, inner = tile
    size_n, size_m = (n, m) if constant else (tir.SizeVar("n", "int32"), tir.SizeVar("m", "int32"))
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with (
        builder.for_range(0, (size_n + rows - 1) // rows, name="io") as io,
        builder.for_range(0, (size_m + columns - 1) // columns, name="jo") as jo,
        builder.for_range(0, rows, name="ii") as ii,
        builder.for_range(0, (columns + inner - 1) // inner, name="jio") as jio,
        builder.for_range(0, inner, name="jii") as jii,
    ):
        j = jio * inner + jii
        guard = tir.all(
            likely(io * rows + ii < size_n),
            likely(jo * columns + j < size_m),
            likely(j < columns),
        )
        with builder.if_scope(guard):
            index = (io * rows + ii) * size_m + jo * columns + j
            a[index] = a[index] + index
    function = tir.PrimFunc([a.asobject()] + ([] if constant else [size_n, size_m]), builder.get())
    with PassContext(config=CONSTANT):
        module = Simplify()(LoopPartition()(IRModule.from_expr(function)))
    (after,) = module.functions.values()
    data = np.zeros(n * m, "int32")
    interpret(after, data, *([] if constant else [n, m]))
    np.testing.assert_array_equal(data, np.arange(n * m))


@pytest.mark.parametrize("option", [True, False])
def test_program_without_conditions_is_the_same_object(option):
    """Nothing to do gives the very same statement."""
    a, i = tir.Var("A", "handle"), tir.Var("i", "int32")
    stmt = tir.For(i, 0, 4, 0, tir.Store(a, i, i))
    assert partition_loops(stmt, option) is stmt


def test_nested_tails_leave_no_guard(nodes_of):
    """Two levels of splits that do not divide: the tail of the tail runs without a check too."""
    rows, panel, block = 53, 4, 3
    a = te.placeholder((rows, 8), name="A")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((rows,), lambda i: te.sum(a[i, k], axis=k), name="C")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=panel)
    outermost, outer = s[c].split(outer, factor=block)
    s[c].reorder(outermost, outer, k, inner)
    s[c].unroll(inner)
    lowered = tvm.lower(s, [a, c])["main"]
    assert not nodes_of(lowered.body, tir.IfThenElse)
    values, result = np.random.default_rng(0).random((rows, 8), dtype="float32"), np.zeros(rows, "float32")
    interpret(lowered, values, result)
    np.testing.assert_allclose(result, values.sum(1), rtol=1e-5)


def test_hint_splits_at_choices(apply, agree, nodes_of):
    """A hinted loop is split at the condition of a choice inside an expression, and each part counts from zero."""
    builder = tir.ir_builder.create()
    a, b = builder.pointer("int32", name="A"), builder.pointer("int32", name="B")
    with builder.for_range(0, 32, name="i") as i:
        b[i] = tir.if_then_else(i < 12, a[i], a[i] * 2)
    loop = builder.get()
    hinted = tir.AttrStmt(loop.loop_var, "pragma_loop_partition_hint", 1, loop)
    before = tir.PrimFunc([a.asobject(), b.asobject()], hinted)
    after = apply(before, LoopPartition(), Simplify())
    first, second = nodes_of(after.body, tir.For)
    assert [(one.min.value, one.extent.value) for one in (first, second)] == [(0, 12), (0, 20)]
    assert not nodes_of(after.body, tir.Call)
    agree(before, after, np.arange(32, dtype="int32"), np.zeros(32, "int32"))


def padded_sum(rows, columns, tile, taps, outer_kind, hint):
    """B[y, x] = the sum of A at taps around (y, x), zero outside; columns in tiles whose loop is unrolled."""
    builder = tir.ir_builder.create()
    a, b = builder.pointer("int32", name="A"), builder.pointer("int32", name="B")
    y, xo, u, xi = (tir.Var(name, "int32") for name in ("y", "xo", "u", "xi"))
    half, x = taps // 2, xo * tile + xi
    value = tir.IntImm("int32", 0)
    for v in range(taps):
        row, column = y + u - half, x + (v - half)
        inside = tir.all(likely(row >= 0), likely(row < rows), likely(column >= 0), likely(column < columns))
        load = tir.Load("int32", a.asobject(), row * columns + column)
        value = value + tir.if_then_else(inside, load, 0)
    into = y * columns + x
    stmt = tir.Store(b.asobject(), tir.Load("int32", b.asobject(), into) + value, into)
    stmt = tir.For(xi, 0, tile, tir.ForKind.UNROLLED, stmt)
    stmt = tir.For(u, 0, taps, tir.ForKind.SERIAL, stmt)
    stmt = tir.For(xo, 0, columns // tile, tir.ForKind.SERIAL, stmt)
    if hint:
        stmt = tir.AttrStmt(xo, "pragma_loop_partition_hint", 1, stmt)
    stmt = tir.For(y, 0, rows, outer_kind, stmt)
    return tir.PrimFunc([a.asobject(), b.asobject()], stmt)


def test_border_is_not_split_further(apply, agree, nodes_of):
    """In the rows at the border, the loop over tiles stays whole, and the rows outside are left by one branch; the rows
    inside have a first, an inner and a last tile."""
    before = padded_sum(9, 12, 4, 3, tir.ForKind.PARALLEL, hint=True)
    with PassContext(config=CONSTANT):
        after = apply(before, LoopPartition(), Simplify())
    branch = after.body.body
    assert repr(branch.condition) == "1 <= y and y < 8"
    tiles = [loop for loop in nodes_of(branch.then_case, tir.For) if loop.kind == tir.ForKind.SERIAL]
    assert [loop.extent.value for loop in tiles] == [3, 3, 3]
    whole = branch.else_case
    assert isinstance(whole, tir.For) and whole.extent.value == 3
    assert isinstance(whole.body.body, tir.IfThenElse) and whole.body.extent.value == 3
    # Where the row is outside, nothing is loaded from it.
    assert not [one for one in nodes_of(whole.body.body.else_case, tir.Load) if one.buffer_var.name == "A"]
    values = np.random.default_rng(0).integers(0, 100, 9 * 12).astype("int32")
    agree(before, after, values, np.zeros(9 * 12, "int32"))


@settings(max_examples=40)
@given(
    rows=st.integers(1, 6),
    tiles=st.integers(1, 4),
    tile=st.integers(1, 5),
    taps=st.sampled_from([1, 3, 5]),
    kind=st.sampled_from([tir.ForKind.PARALLEL, tir.ForKind.SERIAL]),
    hint=st.booleans(),
)
def test_borders_of_all_sizes(rows, tiles, tile, taps, kind, hint):
    """Whatever is inside and outside, the sums are those of the program without splits."""
    before = padded_sum(rows, tiles * tile, tile, taps, kind, hint)
    with PassContext(config=CONSTANT):
        (after,) = Simplify()(LoopPartition()(IRModule.from_expr(before))).functions.values()
    values = np.random.default_rng(0).integers(0, 100, rows * tiles * tile).astype("int32")
    wanted, result = np.zeros_like(values), np.zeros_like(values)
    interpret(before, values, wanted)
    interpret(after, values, result)
    np.testing.assert_array_equal(result, wanted)


def test_border_keeps_choices_that_are_no_guards_apart(apply, agree, nodes_of):
    """A choice between two tensors splits the hinted loop at a border too."""
    builder = tir.ir_builder.create()
    a, b = builder.pointer("int32", name="A"), builder.pointer("int32", name="B")
    y, x = tir.Var("y", "int32"), tir.Var("x", "int32")
    guarded = tir.if_then_else(likely(y >= 1), tir.Load("int32", a.asobject(), y * 8 + x - 8), 0)
    value = tir.if_then_else(x < 3, guarded, tir.Load("int32", a.asobject(), y * 8 + x))
    stmt = tir.For(x, 0, 8, tir.ForKind.SERIAL, tir.Store(b.asobject(), value, y * 8 + x))
    stmt = tir.AttrStmt(x, "pragma_loop_partition_hint", 1, stmt)
    before = tir.PrimFunc([a.asobject(), b.asobject()], tir.For(y, 0, 5, tir.ForKind.PARALLEL, stmt))
    with PassContext(config=CONSTANT):
        after = apply(before, LoopPartition(), Simplify())
    branch = after.body.body
    assert [loop.extent.value for loop in nodes_of(branch.else_case, tir.For)] == [3, 5]
    agree(before, after, np.arange(40, dtype="int32"), np.zeros(40, "int32"))
