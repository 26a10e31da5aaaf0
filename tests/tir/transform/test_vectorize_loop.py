"""Vectorized loops become vector expressions; what has no vector form runs lane by lane; results never change."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.ir.functor import post_order
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform.vectorize_loop import VectorizeLoop, skip_vectorize, vectorize_loops


def function_of(body, *pointers):
    """A function whose parameters are the pointers and scalars of a builder."""
    return tir.PrimFunc(
        [getattr(pointer, "asobject", lambda pointer=pointer: pointer)() for pointer in pointers], body
    )


def test_loop_variable_becomes_a_ramp(apply, agree):
    """An elementwise loop is one store of a ramp with stride one."""
    builder = tir.ir_builder.create()
    a = builder.pointer("float32", name="A")
    with builder.for_range(0, 4, kind="vectorize") as i:
        a[i] = a[i] + 1.0
    before = function_of(builder.get(), a)
    after = apply(before, VectorizeLoop())
    assert isinstance(after.body, tir.Store)
    assert isinstance(after.body.index, tir.Ramp) and after.body.index.stride.value == 1
    assert after.body.value.dtype == "float32x4"
    assert isinstance(after.body.value.b, tir.Broadcast)
    agree(before, after, np.arange(4, dtype="float32"))


def test_base_of_ramp_keeps_the_outer_index(apply, agree, nodes_of):
    """``k * 8 + i`` becomes a ramp that starts at ``k * 8``; a scaled index gets the scale as its stride."""
    builder = tir.ir_builder.create()
    a, b = builder.pointer("float32", name="A"), builder.pointer("float32", name="B")
    with builder.for_range(0, 3, name="k") as k, builder.for_range(0, 8, kind="vectorize") as i:
        a[k * 8 + i] = b[(k * 8 + i) * 2] - 1.0
    before = function_of(builder.get(), a, b)
    after = apply(before, VectorizeLoop())
    strides = sorted(ramp.stride.value for ramp in nodes_of(after.body, tir.Ramp))
    assert strides == [1, 2]
    agree(before, after, np.zeros(24, "float32"), np.arange(48, dtype="float32"))


def test_negative_stride(apply, agree, nodes_of):
    """An index that runs backwards gives a ramp with stride minus one."""
    builder = tir.ir_builder.create()
    a, b = builder.pointer("int32", name="A"), builder.pointer("int32", name="B")
    with builder.for_range(0, 8, kind="vectorize") as i:
        a[i] = b[7 - i]
    before = function_of(builder.get(), a, b)
    after = apply(before, VectorizeLoop())
    assert -1 in [ramp.stride.value for ramp in nodes_of(after.body, tir.Ramp)]
    agree(before, after, np.zeros(8, "int32"), np.arange(8, dtype="int32"))


def test_scalar_condition_stays_a_branch(apply, agree):
    """A condition that is the same in every lane stays, with vectors below; one that differs runs lane by lane."""
    builder = tir.ir_builder.create()
    a = builder.pointer("float32", name="A")
    n, x = tir.Var("n", "int32"), tir.Var("x", "int32")
    with builder.for_range(0, 4, kind="vectorize") as i:
        with builder.if_scope(x < n):
            a[i] = a[i] + 1.0
        with builder.else_scope(), builder.if_scope(i < n):
            a[i] = 2.0
    before = function_of(builder.get(), a, n, x)
    after = apply(before, VectorizeLoop())
    assert isinstance(after.body, tir.IfThenElse)
    assert isinstance(after.body.then_case.index, tir.Ramp)
    assert isinstance(after.body.else_case, tir.For)
    for n_value, x_value in ((3, 1), (3, 5), (0, 0)):
        agree(before, after, np.arange(4, dtype="float32"), n_value, x_value)


def test_if_then_else_on_lanes_runs_lane_by_lane(apply, agree):
    """``if_then_else`` on the loop variable becomes a serial loop; on another variable its branches become vectors."""
    builder = tir.ir_builder.create()
    a = builder.pointer("float32", name="A")
    with builder.for_range(0, 4, kind="vectorize") as i:
        a[i] = tir.if_then_else(i > 0, a[i] + 1.0, a[i])
    before = function_of(builder.get(), a)
    after = apply(before, VectorizeLoop())
    assert isinstance(after.body, tir.For) and after.body.kind == tir.ForKind.SERIAL
    agree(before, after, np.arange(4, dtype="float32"))

    builder = tir.ir_builder.create()
    a, n = builder.pointer("float32", name="A"), tir.Var("n", "int32")
    with builder.for_range(0, n, name="k") as k, builder.for_range(0, 4, kind="vectorize") as i:
        a[k * 4 + i] = tir.if_then_else(k > 0, a[k * 4 + i], 0.0)
    before = function_of(builder.get(), a, n)
    after = apply(before, VectorizeLoop())
    assert isinstance(after.body.body.value.args[2], tir.Broadcast)
    agree(before, after, np.arange(12, dtype="float32"), 3)


@pytest.mark.parametrize("backwards", [False, True])
def test_vectors_inside_a_likely_bound_stay_vectors(apply, agree, nodes_of, backwards):
    """Only the vector that crosses the bound goes lane by lane; it is found by its last lane, or by its first."""
    builder = tir.ir_builder.create()
    a = builder.pointer("float32", name="A")
    with builder.for_range(0, 3, name="k") as k, builder.for_range(0, 8, kind="vectorize") as i:
        place = k * 8 + i
        bound = tir.const(21, "int32") > place if not backwards else 23 - place >= 3
        with builder.if_scope(tir.likely(bound)):
            a[place] = a[place] + 1.0
    before = function_of(builder.get(), a)
    after = apply(before, VectorizeLoop())
    stores = nodes_of(after.body, tir.Store)
    assert sorted(store.value.dtype.lanes for store in stores) == [1, 8]
    agree(before, after, np.arange(24, dtype="float32"))


def test_binding_becomes_a_vector_variable(apply, agree):
    """A binding of a value that differs from lane to lane gets a vector variable."""
    a = tir.Var("A", "handle")
    i, x = tir.Var("i", "int32"), tir.Var("x", "float32")
    body = tir.LetStmt(x, tir.Cast("float32", i) * 2.0, tir.Store(a, x + 1.0, i))
    before = tir.PrimFunc([a], tir.For(i, 0, 4, tir.ForKind.VECTORIZED, body))
    after = apply(before, VectorizeLoop())
    assert isinstance(after.body, tir.LetStmt) and after.body.var.dtype == "float32x4"
    (result,) = agree(before, after, np.zeros(4, "float32"))
    np.testing.assert_array_equal(result, [1, 3, 5, 7])


def test_statement_under_vector_binding_without_vector_form(apply, agree):
    """If a statement needs single lanes, the vector binding around it goes lane by lane too."""
    a = tir.Var("A", "handle")
    i, x = tir.Var("i", "int32"), tir.Var("x", "int32")
    guarded = tir.IfThenElse(x > 2, tir.Store(a, x, i))
    before = tir.PrimFunc([a], tir.For(i, 0, 4, tir.ForKind.VECTORIZED, tir.LetStmt(x, i * 2, guarded)))
    after = apply(before, VectorizeLoop())
    assert isinstance(after.body, tir.For) and isinstance(after.body.body, tir.LetStmt)
    agree(before, after, np.zeros(4, "int32"))


def test_let_expression(apply, agree):
    """A let inside an expression becomes a let of vectors."""
    a = tir.Var("A", "handle")
    i, v = tir.Var("i", "int32"), tir.Var("v", "float32")
    value = tir.Let(v, tir.Load("float32", a, i) + 10.0, v * v)
    before = tir.PrimFunc([a], tir.For(i, 0, 4, tir.ForKind.VECTORIZED, tir.Store(a, value, i)))
    after = apply(before, VectorizeLoop())
    assert after.body.value.dtype == "float32x4" and after.body.value.var.dtype == "float32x4"
    agree(before, after, np.arange(4, dtype="float32"))


def test_inner_loop_whose_extent_depends_on_the_lane(apply, agree):
    """A loop that runs differently often in each lane goes lane by lane; one that does not has a vector body."""
    builder = tir.ir_builder.create()
    a = builder.pointer("float32", name="A")
    with builder.for_range(0, 4, kind="vectorize") as i, builder.for_range(0, i + 1, name="j") as j:
        a[i] = a[i] + tir.Cast("float32", j)
    before = function_of(builder.get(), a)
    after = apply(before, VectorizeLoop())
    assert isinstance(after.body, tir.For) and isinstance(after.body.body, tir.For)
    agree(before, after, np.zeros(4, "float32"))

    builder = tir.ir_builder.create()
    a = builder.pointer("float32", name="A")
    with builder.for_range(0, 4, kind="vectorize") as i, builder.for_range(0, 3, name="j") as j:
        a[j * 4 + i] = a[j * 4 + i] * 2.0
    before = function_of(builder.get(), a)
    after = apply(before, VectorizeLoop())
    assert isinstance(after.body, tir.For) and isinstance(after.body.body.index, tir.Ramp)
    agree(before, after, np.arange(12, dtype="float32"))


def test_allocation_inside_gets_a_lane_each(apply, agree):
    """A buffer allocated inside the loop holds one element a lane for each of its own."""
    builder = tir.ir_builder.create()
    a = builder.pointer("float32", name="A")
    with builder.for_range(0, 4, kind="vectorize") as i:
        b = builder.allocate("float32", 2, name="B")
        b[0] = a[i] + 1.0
        b[1] = b[0] * 2.0
        a[i] = b[0] + b[1]
    before = function_of(builder.get(), a)
    after = apply(before, VectorizeLoop())
    assert [extent.value for extent in after.body.extents] == [2, 4]
    (result,) = agree(before, after, np.arange(4, dtype="float32"))
    np.testing.assert_array_equal(result, [3, 6, 9, 12])


def test_intrinsics_of_single_elements_become_vector_calls(apply, nodes_of):
    """Math functions act on vectors; a call of unknown code runs lane by lane."""
    builder = tir.ir_builder.create()
    a = builder.pointer("float32", name="A")
    with builder.for_range(0, 4, kind="vectorize") as i:
        a[i] = tir.exp(a[i])
    after = apply(function_of(builder.get(), a), VectorizeLoop())
    (call,) = nodes_of(after.body, tir.Call)
    assert call.dtype == "float32x4"

    builder = tir.ir_builder.create()
    a = builder.pointer("float32", name="A")
    with builder.for_range(0, 4, kind="vectorize") as i:
        a[i] = tir.call_pure_extern("float32", "unknown", a[i])
    after = apply(function_of(builder.get(), a), VectorizeLoop())
    assert isinstance(after.body, tir.For) and after.body.kind == tir.ForKind.SERIAL


def test_effects_happen_once_an_iteration(apply):
    """A call with an effect that does not depend on the lane still happens in every iteration."""
    i = tir.Var("i", "int32")
    body = tir.Evaluate(tir.call_extern("int32", "tick"))
    after = apply(tir.PrimFunc([], tir.For(i, 0, 4, tir.ForKind.VECTORIZED, body)), VectorizeLoop())
    assert isinstance(after.body, tir.For) and after.body.extent.value == 4


def test_sum_into_one_place_is_not_a_vector_store(apply, agree):
    """Lanes that all add to one element run one after another."""
    builder = tir.ir_builder.create()
    a, b = builder.pointer("int32", name="A"), builder.pointer("int32", name="B")
    with builder.for_range(0, 4, kind="vectorize") as i:
        a[0] = a[0] + b[i]
    before = function_of(builder.get(), a, b)
    after = apply(before, VectorizeLoop())
    result, _ = agree(before, after, np.zeros(1, "int32"), np.array([1, 2, 3, 4], "int32"))
    assert result[0] == 10


def test_extent_that_is_no_constant_becomes_serial(apply, agree):
    """A vectorized loop of unknown length is a serial loop, and one of length one its body."""
    builder = tir.ir_builder.create()
    a, n = builder.pointer("int32", name="A"), tir.Var("n", "int32")
    with builder.for_range(0, n, kind="vectorize") as i:
        a[i] = i
    before = function_of(builder.get(), a, n)
    after = apply(before, VectorizeLoop())
    assert after.body.kind == tir.ForKind.SERIAL
    agree(before, after, np.zeros(5, "int32"), 5)

    i = tir.Var("i", "int32")
    store = vectorize_loops(tir.For(i, 3, 1, tir.ForKind.VECTORIZED, tir.Store(a.asobject(), i, i)))
    assert store.index.value == 3


def test_nested_vectorized_loops(apply, agree):
    """Of two nested vectorized loops the outer becomes the vector, the inner a serial loop."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with builder.for_range(0, 4, kind="vectorize") as i, builder.for_range(0, 2, kind="vectorize") as j:
        a[j * 4 + i] = i + j
    before = function_of(builder.get(), a)
    after = apply(before, VectorizeLoop())
    assert after.body.kind == tir.ForKind.SERIAL and isinstance(after.body.body.index, tir.Ramp)
    agree(before, after, np.zeros(8, "int32"))


def test_predicates_become_vectors(apply, agree):
    """The predicate of a store and of a load is a vector of bools."""
    a, b, i = tir.Var("A", "handle"), tir.Var("B", "handle"), tir.Var("i", "int32")
    value = tir.Select(i < 3, tir.Load("int32", b, i, i < 3), 7)
    before = tir.PrimFunc([a, b], tir.For(i, 0, 4, tir.ForKind.VECTORIZED, tir.Store(a, value, i, i > 0)))
    after = apply(before, VectorizeLoop())
    assert after.body.predicate.dtype == "boolx4" and after.body.value.true_value.predicate.dtype == "boolx4"
    result, _ = agree(before, after, np.zeros(4, "int32"), np.array([5, 6, 8], "int32"))
    np.testing.assert_array_equal(result, [0, 6, 8, 7])


@pytest.mark.parametrize("enable", [True, False])
def test_switched_off_makes_loops_serial(apply, enable, nodes_of):
    """``VectorizeLoop(False)`` makes the loops serial."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with builder.for_range(0, 4, kind="vectorize") as i:
        a[i] = i
    after = apply(function_of(builder.get(), a), VectorizeLoop(enable))
    assert len(nodes_of(after.body, tir.For)) == (0 if enable else 1)


def test_program_without_vectorized_loops_is_the_same_object():
    """Nothing to do gives the very same statement."""
    a, i = tir.Var("A", "handle"), tir.Var("i", "int32")
    stmt = tir.For(i, 0, 4, tir.ForKind.SERIAL, tir.Store(a, i, i))
    assert vectorize_loops(stmt) is stmt and skip_vectorize(stmt) is stmt


@pytest.mark.parametrize(
    ("lanes", "vectors"), [(8, [8]), (12, [12]), (24, [16, 8]), (48, [32, 16]), (37, [32, 4, 1])]
)
def test_long_vectors_have_lengths_of_powers_of_two(lanes, vectors):
    """A long vector whose length is not a power of two is made of several that are; the result is the same."""
    a = te.placeholder((5, lanes), name="A")
    b = te.compute((5, lanes), lambda i, j: a[i, j] * 2.0 + 1.0, name="B")
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[1])
    lowered = tvm.lower(s, [a, b])["main"]
    stores = [found for found in post_order(lowered.body) if isinstance(found, tir.Store)]
    assert [store.value.dtype.lanes for store in stores] == vectors
    values, result = (
        np.random.default_rng(0).random((5, lanes), dtype="float32"),
        np.zeros((5, lanes), "float32"),
    )
    tvm.build(s, [a, b], "llvm")(values, result)
    np.testing.assert_allclose(result, values * 2 + 1)


def chosen(value_of):
    """A function over inputs I, A and output B of 64 elements: B[i] = Select(0 <= I[i] < 64, value_of(A, I, i), 0)."""
    indices = te.placeholder((64,), "int32", name="I")
    data = te.placeholder((64,), "float32", name="A")

    def element(i):
        inside = tir.all(indices[i] >= 0, indices[i] < 64)
        return tir.Select(inside, value_of(data, indices, i), tir.const(0, "float32"))

    made = te.compute((64,), element, name="B")
    schedule = te.create_schedule(made.op)
    _, inner = schedule[made].split(made.op.axis[0], 16)
    schedule[made].vectorize(inner)
    return tvm.lower(schedule, [indices, data, made])["main"]


def reads_of(function, name):
    """The reads of a buffer."""
    return [
        node
        for node in post_order(function.body)
        if isinstance(node, tir.Load) and node.buffer_var.name == name
    ]


def test_a_read_that_only_the_condition_keeps_inside_gets_a_mask():
    """A[I[i]] in a Select happens in the lanes that ask for it, and in no other."""
    function = chosen(lambda data, indices, i: data[indices[i]])
    (read,) = reads_of(function, "A")
    assert read.dtype == "float32x16" and isinstance(read.predicate, tir.And)
    assert all(isinstance(read.predicate, tir.Broadcast) for read in reads_of(function, "I"))
    given = np.full(64, 10**6, "int32")
    given[::2] = np.arange(32)
    result, data = np.full(64, -1, "float32"), np.arange(64, dtype="float32") + 1
    interpret(function, given, data, result)
    np.testing.assert_array_equal(result, np.where(given < 64, data[given % 64], 0))


@pytest.mark.parametrize(
    "value_of",
    [
        pytest.param(lambda data, indices, i: data[i], id="index_of_the_loop"),
        pytest.param(lambda data, indices, i: data[te.min(te.max(indices[i], 0), 63)], id="clamped"),
        pytest.param(lambda data, indices, i: data[tir.floormod(indices[i], 64)], id="remainder"),
        pytest.param(lambda data, indices, i: indices[i].astype("float32") * 2.0, id="read_by_the_condition"),
    ],
)
def test_a_read_that_is_inside_whatever_the_condition_says_stays_plain(value_of):
    """A plain vector load or gather is faster than a masked one."""
    function = chosen(value_of)
    assert all(
        isinstance(read.predicate, tir.Broadcast) for name in "AI" for read in reads_of(function, name)
    )


def test_a_read_that_both_values_make_stays_plain():
    """It happens whichever value is chosen, even of a buffer whose size is not known."""
    builder = tir.ir_builder.create()
    a, b = builder.pointer("float32", name="A"), builder.pointer("float32", name="B")
    with builder.for_range(0, 8, kind="vectorize") as i:
        b[i] = tir.Select(i % 2 > 0, a[i + 1] * 0.5, a[i + 1])
    assert all(
        isinstance(node.predicate, tir.Broadcast)
        for node in post_order(vectorize_loops(builder.get()))
        if isinstance(node, tir.Load)
    )


def test_vectors_of_all_iterations_become_one(apply, agree):
    """A loop over stores of whole vectors that lie one after another is one longer store."""
    builder = tir.ir_builder.create()
    a, b = builder.pointer("float32x4", name="A"), builder.pointer("float32x4", name="B")
    with builder.for_range(0, 4, kind="vectorize") as i:
        a[i] = b[i]
        b[i] = tir.const(1.0, "float32x4")
    before = function_of(builder.get(), a, b)
    after = apply(before, VectorizeLoop())
    assert [(store.index.lanes, store.value.dtype) for store in after.body.seq] == [(16, "float32x16")] * 2
    agree(before, after, np.zeros(16, "float32"), np.arange(16, dtype="float32"))
