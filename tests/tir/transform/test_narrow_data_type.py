"""Indices are computed in 32 bits where all their parts fit."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.narrow_data_type import NarrowDataType, narrow_data_type


def nest(m, n, scalars=()):
    """for i in m, for j in n: B[i * n + j] = A[i * n + j] + 1, all in int64"""
    builder = tir.ir_builder.create()
    a, b = builder.pointer("int32", name="A"), builder.pointer("int32", name="B")
    with (
        builder.for_range(0, m, name="i", dtype="int64") as i,
        builder.for_range(0, n, name="j", dtype="int64") as j,
    ):
        b[i * n + j] = a[i * n + j] + 1
    return tir.PrimFunc([a.asobject(), b.asobject(), *scalars], builder.get())


def long(value):
    """An int64 constant."""
    return tir.IntImm("int64", value)


def types_of(function, nodes_of):
    """The types of the loop variables and of the store's index."""
    variables = [loop.loop_var.dtype for loop in nodes_of(function.body, tir.For)]
    return variables + [store.index.dtype for store in nodes_of(function.body, tir.Store)]


def test_small_constant_loops_become_narrow(apply, agree, nodes_of):
    """Loops of small constant extent count in int32."""
    before = nest(long(4), long(6))
    after = apply(before, NarrowDataType(32))
    assert set(types_of(after, nodes_of)) == {"int32"}
    agree(before, after, np.arange(24, dtype="int32"), np.zeros(24, "int32"))


def test_large_index_stays_wide(apply, nodes_of):
    """If the flat index does not fit, the variables in it stay wide, though each would fit."""
    after = apply(nest(long(2**20), long(2**20)), NarrowDataType(32))
    assert set(types_of(after, nodes_of)) == {"int64"}
    after = apply(nest(long(2**10), long(2**11)), NarrowDataType(32))
    assert set(types_of(after, nodes_of)) == {"int32"}


def test_unknown_sizes_stay_wide(apply, nodes_of):
    """An int64 size from outside may be anything."""
    n = tir.SizeVar("n", "int64")
    before = nest(n, long(4), [n])
    after = apply(before, NarrowDataType(32))
    inner, outer, index = types_of(after, nodes_of)
    assert (outer, index) == ("int64", "int64") and inner == "int64"


def test_values_keep_their_type(apply, agree):
    """A variable used as a value, not as an index, is widened again."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int64", name="A")
    with builder.for_range(0, long(8), name="i", dtype="int64") as i:
        a[i] = i * tir.IntImm("int64", 2**40)
    before = tir.PrimFunc([a.asobject()], builder.get())
    after = apply(before, NarrowDataType(32))
    assert after.body.loop_var.dtype == "int32" and after.body.body.value.dtype == "int64"
    (result,) = agree(before, after, np.zeros(8, "int64"))
    assert result[7] == 7 * 2**40


def test_conditions_become_narrow(apply, agree, nodes_of):
    """Comparisons of indices that fit are made in int32."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with builder.for_range(0, long(8), name="i", dtype="int64") as i, builder.if_scope(i * 2 < long(9)):
        a[i] = 1
    before = tir.PrimFunc([a.asobject()], builder.get())
    after = apply(before, NarrowDataType(32))
    (comparison,) = nodes_of(after.body, tir.LT)
    assert comparison.a.dtype == "int32" and comparison.b.dtype == "int32"
    agree(before, after, np.zeros(8, "int32"))


def test_thread_index(apply, nodes_of):
    """A thread index becomes narrow with its axis."""
    axis = tir.IterVar((long(0), long(32)), "threadIdx.x", 1, "threadIdx.x")
    a = tir.Var("A", "handle")
    stmt = tir.AttrStmt(axis, "thread_extent", long(32), tir.Store(a, 1, axis.var * long(2)))
    after = apply(tir.PrimFunc([a], stmt), NarrowDataType(32))
    assert after.body.node.var.dtype == "int32" and after.body.value.dtype == "int32"
    assert after.body.body.index.dtype == "int32"


def test_narrow_program_is_the_same_object():
    """A program in int32 comes back as it is; a strange number of bits is an error."""
    stmt = nest(tir.IntImm("int32", 4), tir.IntImm("int32", 4)).body
    narrow = narrow_data_type(stmt, 32)
    assert narrow_data_type(narrow, 32) is narrow
    with pytest.raises(LoweringError, match="17 bits"):
        narrow_data_type(stmt, 17)


def test_thread_index_takes_the_type_of_its_extent(apply, nodes_of):
    """Thread indices are as wide as their extents where an index of them does not fit, and narrow where it does."""
    for extent, dtype in ((2**30, "int64"), (2, "int32")):
        builder = tir.ir_builder.create()
        a = builder.pointer("int32", name="A")
        block = tir.IterVar(None, tir.Var("bx", "int32"), 1, "blockIdx.x")
        thread = tir.IterVar(None, tir.Var("tx", "int32"), 1, "threadIdx.x")
        builder.scope_attr(block, "thread_extent", long(extent))
        builder.scope_attr(thread, "thread_extent", long(32))
        a[block.var * long(32) + thread.var] = 1
        after = apply(tir.PrimFunc([a.asobject()], builder.get()), NarrowDataType(32))
        assert [attr.node.var.dtype for attr in nodes_of(after.body, tir.AttrStmt)] == [dtype, dtype]
        (store,) = nodes_of(after.body, tir.Store)
        assert store.index.dtype == dtype


def test_constant_index_becomes_narrow(apply):
    """An index without variables is narrow too."""
    a = tir.Var("A", "handle")
    before = tir.PrimFunc([a], tir.Store(a, tir.const(1, "int32"), long(7)))
    assert apply(before, NarrowDataType(32)).body.index.dtype == "int32"
