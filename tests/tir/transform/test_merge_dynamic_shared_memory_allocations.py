"""Dynamic shared buffers share one allocation."""

import numpy as np

from tilewright import te, tir
from tilewright.tir.interpreter import interpret
from tilewright.tir.transform.merge_dynamic_shared_memory_allocations import (
    MergeDynamicSharedMemoryAllocations,
)


def program(count):
    """Threads write to several dynamic buffers, and read them the other way round."""
    builder = tir.ir_builder.create()
    out = builder.pointer("float32", name="out")
    tx = te.thread_axis("threadIdx.x")
    builder.scope_attr(tx, "thread_extent", 8)
    kinds = [("float32", 8), ("int8", 5), ("float64", 8), ("int32", 8)][:count]
    buffers = [
        builder.allocate(kind, max(size, 8), name=f"S{place}", scope="shared.dyn")
        for place, (kind, size) in enumerate(kinds)
    ]
    for place, buffer in enumerate(buffers):
        buffer[tx.var] = tir.Cast(buffer.dtype, tx.var + place)
    builder.emit(tir.call_intrin("int32", "tir.tvm_storage_sync", "shared.dyn"))
    total = tir.const(0.0, "float32")
    for buffer in buffers:
        total = total + tir.Cast("float32", buffer[7 - tx.var])
    out[tx.var] = total
    return tir.PrimFunc([out.asobject()], builder.get())


def test_several_become_one(apply, nodes_of):
    """One array of bytes; every buffer starts at a multiple of sixteen bytes and none overlap."""
    after = apply(program(4), MergeDynamicSharedMemoryAllocations())
    (allocate,) = nodes_of(after.body, tir.Allocate)
    assert allocate.dtype == "uint8" and allocate.buffer_var.storage_scope == "shared.dyn"
    assert allocate.extents[0].value == 32 + 16 + 64 + 32
    stores = [store for store in nodes_of(after.body, tir.Store) if store.buffer_var is allocate.buffer_var]
    starts = sorted(
        int(store.index.b) * store.value.dtype.itemsize if isinstance(store.index, tir.Add) else 0
        for store in stores
    )
    assert starts == [0, 32, 96, 112]


def test_one_stays(apply):
    """A single buffer has nothing to share with."""
    before = program(1)
    assert apply(before, MergeDynamicSharedMemoryAllocations()).body is before.body


def test_symbolic_sizes(apply, nodes_of):
    """Sizes known only at launch are added up as expressions."""
    builder = tir.ir_builder.create()
    n = tir.Var("n")
    tx = te.thread_axis("threadIdx.x")
    builder.scope_attr(tx, "thread_extent", 8)
    a = builder.allocate("float32", n, name="a", scope="shared.dyn")
    b = builder.allocate("float32", n, name="b", scope="shared.dyn")
    a[tx.var] = 1.0
    b[tx.var] = a[tx.var]
    after = apply(tir.PrimFunc([n], builder.get()), MergeDynamicSharedMemoryAllocations())
    (allocate,) = nodes_of(after.body, tir.Allocate)
    size = tir.stmt_functor.substitute(allocate.extents[0], {n: tir.const(5)})
    assert value_of(size) == 64


def value_of(expr):
    """The value of a constant expression."""
    out = tir.decl_buffer((1,), "int32", name="out")
    result = np.zeros(1, "int32")
    interpret(tir.PrimFunc([out], tir.Store(out.data, expr, 0)), result)
    return result[0]
