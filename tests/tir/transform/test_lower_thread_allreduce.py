"""Reductions across threads become shared memory and barriers, or shuffles, and give every thread the result."""

import numpy as np
import pytest

from tilewright import te, tir
from tilewright.support.errors import LoweringError
from tilewright.target import Target
from tilewright.tir.transform.lower_thread_allreduce import LowerThreadAllreduce


def sum_program(extents, along, dtype="float32"):
    """Each thread of a block brings one element and stores the sum along some of the thread indices."""
    builder = tir.ir_builder.create()
    a, out = builder.pointer(dtype, name="A"), builder.pointer(dtype, name="out")
    axes = {letter: te.thread_axis(f"threadIdx.{letter}") for letter in extents}
    index, stride = 0, 1
    for letter, extent in extents.items():
        builder.scope_attr(axes[letter], "thread_extent", extent)
        index = axes[letter].var * stride + index
        stride *= extent
    result = builder.allocate(dtype, 1, name="result", scope="local")
    x, y = tir.Var("x", dtype), tir.Var("y", dtype)
    reducer = tir.CommReducer([x], [y], [x + y], [tir.const(0, dtype)])
    with builder.new_scope():
        builder.scope_attr(reducer, "reduce_scope", tir.const(0, "handle"))
        arguments = [tir.const(1, "uint32"), a[index], tir.const(True), result.asobject()]
        builder.emit(
            tir.call_intrin(
                "handle", "tir.tvm_thread_allreduce", *arguments, *[axes[letter].var for letter in along]
            )
        )
    out[index] = result[0]
    return tir.PrimFunc([a.asobject(), out.asobject()], builder.get(), attrs={"target": Target("cuda")})


def names(nodes_of, function):
    return {call.op.name for call in nodes_of(function.body, tir.Call)}


@pytest.mark.parametrize(
    ("extents", "along"),
    [
        ({"x": 16}, "x"),
        ({"x": 7}, "x"),
        ({"x": 33}, "x"),
        ({"x": 2}, "x"),
        ({"x": 4, "y": 3}, "x"),
        ({"x": 4, "y": 5}, "y"),
        ({"x": 3, "y": 5}, "xy"),
        ({"x": 2, "y": 3, "z": 2}, "xz"),
        ({"x": 1, "y": 4}, "x"),
    ],
)
def test_sums_through_shared_memory(apply, agree, nodes_of, extents, along):
    """Any number of threads along any indices; the other indices keep their groups apart."""
    before = sum_program(extents, along)
    after = apply(before, LowerThreadAllreduce())
    assert "tir.tvm_thread_allreduce" not in names(nodes_of, after)
    size = int(np.prod(list(extents.values())))
    values = np.random.default_rng(0).integers(-50, 50, size).astype("float32")
    agree(before, after, values, np.zeros(size, "float32"))


def test_one_warp_shuffles(apply, nodes_of):
    """Thirty-two threads in x exchange registers, and need neither shared memory nor barriers."""
    after = apply(sum_program({"x": 32, "y": 2}, "x"), LowerThreadAllreduce())
    calls = [call.op.name for call in nodes_of(after.body, tir.Call)]
    assert calls.count("tir.tvm_warp_shuffle_down") == 5 and calls.count("tir.tvm_warp_shuffle") == 1
    assert "tir.tvm_storage_sync" not in calls
    assert [node.buffer_var.storage_scope for node in nodes_of(after.body, tir.Allocate)] == ["local"]


@pytest.mark.parametrize(
    ("extents", "along", "dtype"), [({"x": 33}, "x", "float64"), ({"x": 2, "y": 32}, "y", "int32")]
)
def test_what_cannot_shuffle(apply, agree, nodes_of, extents, along, dtype):
    """Threads that are not neighbours in a warp, or not a power of two of them, go through shared memory."""
    before = sum_program(extents, along, dtype)
    after = apply(before, LowerThreadAllreduce())
    assert "tir.tvm_storage_sync" in names(nodes_of, after)
    size = int(np.prod(list(extents.values())))
    agree(before, after, np.arange(size).astype(dtype), np.zeros(size, dtype))


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "float16", "int8", "float32"])
@pytest.mark.parametrize("extents", [{"x": 4, "y": 3}, {"x": 32}, {"x": 128, "y": 2}])
def test_shuffles_of_every_type(apply, agree, nodes_of, extents, dtype):
    """Lanes exchange words of 32 bits, whatever the elements are; several warps need one barrier."""
    before = sum_program(extents, "x", dtype)
    after = apply(before, LowerThreadAllreduce())
    calls = [call.op.name for call in nodes_of(after.body, tir.Call)]
    assert "tir.tvm_warp_shuffle_down" in calls
    assert calls.count("tir.tvm_storage_sync") == int(extents["x"] > 32)
    size = int(np.prod(list(extents.values())))
    values = np.random.default_rng(3).integers(0, 3, size).astype(dtype)
    agree(before, after, values, np.zeros(size, dtype))


def test_tuples_and_conditions(apply, agree):
    """The index and value of the greatest element among those that count."""
    builder = tir.ir_builder.create()
    a, index, value = (
        builder.pointer(kind, name=name) for kind, name in (("int32", "A"), ("int32", "i"), ("int32", "v"))
    )
    tx = te.thread_axis("threadIdx.x")
    builder.scope_attr(tx, "thread_extent", 11)
    results = [builder.allocate("int32", 1, name=name, scope="local") for name in ("at", "best")]
    left = [tir.Var("i0"), tir.Var("v0")]
    right = [tir.Var("i1"), tir.Var("v1")]
    better = tir.GE(left[1], right[1])
    combined = [tir.Select(better, one, other) for one, other in zip(left, right, strict=True)]
    reducer = tir.CommReducer(left, right, combined, [tir.const(-1), tir.min_value("int32")])
    with builder.new_scope():
        builder.scope_attr(reducer, "reduce_scope", tir.const(0, "handle"))
        arguments = [tir.const(2, "uint32"), tx.var, a[tx.var], tir.floormod(tx.var, 2).equal(0)]
        builder.emit(
            tir.call_intrin(
                "handle",
                "tir.tvm_thread_allreduce",
                *arguments,
                *[result.asobject() for result in results],
                tx.var,
            )
        )
    index[tx.var] = results[0][0]
    value[tx.var] = results[1][0]
    before = tir.PrimFunc(
        [item.asobject() for item in (a, index, value)], builder.get(), attrs={"target": Target("cuda")}
    )
    after = apply(before, LowerThreadAllreduce())
    values = np.array([3, 9, 1, 50, 8, 2, 8, 99, 0, 5, 4], "int32")
    _, at, best = agree(before, after, values, np.zeros(11, "int32"), np.zeros(11, "int32"))
    assert set(best) == {8} and set(at) == {4}


def test_repeated_reductions(apply, agree):
    """In a loop, a round does not disturb those that still read the one before."""
    builder = tir.ir_builder.create()
    a, out = builder.pointer("float32", name="A"), builder.pointer("float32", name="out")
    tx = te.thread_axis("threadIdx.x")
    builder.scope_attr(tx, "thread_extent", 6)
    result = builder.allocate("float32", 1, name="result", scope="local")
    x, y = tir.Var("x", "float32"), tir.Var("y", "float32")
    reducer = tir.CommReducer([x], [y], [tir.max(x, y)], [tir.min_value("float32")])
    with builder.for_range(0, 4, name="k") as k:
        with builder.new_scope():
            builder.scope_attr(reducer, "reduce_scope", tir.const(0, "handle"))
            arguments = [
                tir.const(1, "uint32"),
                a[k * 6 + tx.var],
                tir.const(True),
                result.asobject(),
                tx.var,
            ]
            builder.emit(tir.call_intrin("handle", "tir.tvm_thread_allreduce", *arguments))
        out[k * 6 + tx.var] = result[0]
    before = tir.PrimFunc([a.asobject(), out.asobject()], builder.get(), attrs={"target": Target("cuda")})
    after = apply(before, LowerThreadAllreduce())
    values = np.random.default_rng(1).standard_normal(24).astype("float32")
    _, result = agree(before, after, values, np.zeros(24, "float32"))
    np.testing.assert_array_equal(
        result.reshape(4, 6), values.reshape(4, 6).max(1, keepdims=True).repeat(6, 1)
    )


def test_extents_must_be_constant(apply):
    """The tree of additions is laid out when the program is compiled."""
    n = tir.Var("n")
    builder = tir.ir_builder.create()
    a = builder.pointer("float32", name="A")
    tx = te.thread_axis("threadIdx.x")
    builder.scope_attr(tx, "thread_extent", n)
    x, y = tir.Var("x", "float32"), tir.Var("y", "float32")
    reducer = tir.CommReducer([x], [y], [x + y], [tir.const(0.0, "float32")])
    builder.scope_attr(reducer, "reduce_scope", tir.const(0, "handle"))
    arguments = [tir.const(1, "uint32"), a[tx.var], tir.const(True), a.asobject(), tx.var]
    builder.emit(tir.call_intrin("handle", "tir.tvm_thread_allreduce", *arguments))
    function = tir.PrimFunc([a.asobject(), n], builder.get(), attrs={"target": Target("cuda")})
    with pytest.raises(
        LoweringError, match=r"threadIdx\.x has extent n; a reduction across threads needs a constant"
    ):
        apply(function, LowerThreadAllreduce())


def test_divergent_reductions_are_refused(apply):
    """Threads that skip the reduction would leave the others waiting."""
    function = sum_program({"x": 8}, "x")
    axis = function.body.node

    def guard(stmt):
        return tir.IfThenElse(axis.var < 4, stmt) if stmt.attr_key == "reduce_scope" else None

    body = tir.stmt_functor.ir_transform(function.body, None, guard, ["tir.AttrStmt"])
    with pytest.raises(LoweringError, match="inside a condition that they decide differently"):
        apply(function.with_body(body), LowerThreadAllreduce())
