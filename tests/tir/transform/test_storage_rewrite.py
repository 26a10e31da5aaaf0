"""Allocations move out of loops, and buffers that are never alive together share memory."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.tir.transform.storage_rewrite import StorageRewrite, storage_rewrite


def test_allocations_in_sequence_share(apply, agree, nodes_of):
    """Two buffers used one after the other in a loop become one allocation before it, as large as the larger."""
    builder = tir.ir_builder.create()
    out = builder.pointer("float32", name="Out")
    with builder.for_range(0, 3, name="i") as i:
        with builder.for_range(0, 10, name="j") as j:
            a = builder.allocate("float32", 200, name="A")
            a[j] = 1.5
            out[j] = out[j] + a[j]
        with builder.for_range(0, 10, name="j") as j:
            b = builder.allocate("float32", 300, name="B")
            b[j] = tir.Cast("float32", i)
            out[j] = out[j] * b[j]
    before = tir.PrimFunc([out.asobject()], builder.get())
    after = apply(before, StorageRewrite())
    (allocate,) = nodes_of(after.body, tir.Allocate)
    assert after.body is allocate and allocate.extents[0].value == 300
    agree(before, after, np.arange(10, dtype="float32"))


def test_overlapping_lifetimes_do_not_share(apply, agree, nodes_of):
    """Buffers that are alive at the same time keep their own memory."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="Out")
    a = builder.allocate("int32", 40, name="A")
    b = builder.allocate("int32", 40, name="B")
    with builder.for_range(0, 40, name="i") as i:
        a[i] = i
    with builder.for_range(0, 40, name="j") as j:
        b[j] = a[39 - j] * 2
    with builder.for_range(0, 40, name="k") as k:
        out[k] = a[k] + b[k]
    before = tir.PrimFunc([out.asobject()], builder.get())
    after = apply(before, StorageRewrite())
    assert len(nodes_of(after.body, tir.Allocate)) == 2
    agree(before, after, np.zeros(40, "int32"))


def test_value_carried_across_iterations_keeps_its_memory(apply, agree, nodes_of):
    """A buffer from outside a loop lives through the whole loop, so one inside does not take its memory."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="Out")
    a = builder.allocate("int32", 40, name="A")
    with builder.for_range(0, 40, name="i") as i:
        a[i] = i
    with builder.for_range(0, 3, name="t"):
        with builder.for_range(0, 40, name="j") as j:
            out[j] = out[j] + a[j]
        b = builder.allocate("int32", 40, name="B")
        with builder.for_range(0, 40, name="k") as k:
            b[k] = 7
        with builder.for_range(0, 40, name="l") as l:
            out[l] = out[l] + b[39 - l]
    before = tir.PrimFunc([out.asobject()], builder.get())
    after = apply(before, StorageRewrite())
    assert len(nodes_of(after.body, tir.Allocate)) == 2
    (result,) = agree(before, after, np.zeros(40, "int32"))
    assert result[5] == 3 * (5 + 7)


def chain(shared_index):
    """A[i] = i; B[i] = A[...] + 1; Out[i] = B[i]"""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="Out")
    a = builder.allocate("int32", 64, name="A")
    b = builder.allocate("int32", 64, name="B")
    with builder.for_range(0, 64, name="i") as i:
        a[i] = i
    with builder.for_range(0, 64, name="j") as j:
        b[j] = a[shared_index(j)] + 1
    with builder.for_range(0, 64, name="k") as k:
        out[k] = b[k]
    return tir.PrimFunc([out.asobject()], builder.get())


@pytest.mark.parametrize(("index", "blocks"), [(lambda j: j, 1), (lambda j: 63 - j, 2)])
def test_element_by_element_runs_in_place(apply, agree, nodes_of, index, blocks):
    """The result of an elementwise step takes the memory of its input; of a permutation it does not."""
    before = chain(index)
    after = apply(before, StorageRewrite())
    assert len(nodes_of(after.body, tir.Allocate)) == blocks
    agree(before, after, np.zeros(64, "int32"))


def test_parallel_loop_keeps_its_buffers(apply, agree):
    """A buffer of a parallel loop moves to the top of its body, not out of it."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="Out")
    with builder.for_range(0, 4, name="i", kind="parallel") as i, builder.for_range(0, 8, name="j") as j:
        a = builder.allocate("int32", 16, name="A")
        a[j] = i + j
        out[i * 8 + j] = a[j]
    before = tir.PrimFunc([out.asobject()], builder.get())
    after = apply(before, StorageRewrite())
    assert isinstance(after.body, tir.For) and isinstance(after.body.body, tir.Allocate)
    agree(before, after, np.zeros(32, "int32"))


def test_thread_group_keeps_its_buffers(apply):
    """Under thread indices a buffer moves to the outermost one; registers are not shared."""
    builder = tir.ir_builder.create()
    out = builder.pointer("int32", name="Out")
    block = tir.IterVar((0, 4), "blockIdx.x", 1, "blockIdx.x")
    thread = tir.IterVar((0, 4), "threadIdx.x", 1, "threadIdx.x")
    builder.scope_attr(block, "thread_extent", 4)
    builder.scope_attr(thread, "thread_extent", 4)
    for step in range(2):
        with builder.for_range(0, 8, name="j") as j:
            a = builder.allocate("int32", 16, name=f"A{step}", scope="local")
            a[j] = j
            out[j] = a[j]
    after = apply(tir.PrimFunc([out.asobject()], builder.get()), StorageRewrite())
    first = after.body.body
    assert isinstance(first, tir.Allocate) and isinstance(first.body, tir.Allocate)
    assert {first.buffer_var.name, first.body.buffer_var.name} == {"A0", "A1"}


def test_tagged_scopes_share(apply):
    """A scope with a tag is a memory of its own: what is used one after the other shares it, as in plain memory."""
    builder = tir.ir_builder.create()
    n = tir.Var("n", "int32")
    with builder.for_range(0, n, name="i"):
        for step in range(2):
            with builder.for_range(0, 10, name="j") as j:
                a = builder.allocate("float32", 200, name=f"A{step}", scope="local.L0A")
                a[j] = float(step)
    after = apply(tir.PrimFunc([n], builder.get()), StorageRewrite())
    assert isinstance(after.body, tir.Allocate) and isinstance(after.body.body, tir.For)
    assert after.body.extents[0].value == 200 and after.body.buffer_var.storage_scope == "local.L0A"


def test_symbolic_sizes_share_when_they_are_alike(apply, agree, nodes_of):
    """Buffers of one symbolic size share; a size that is only known inside a loop stays there."""
    builder = tir.ir_builder.create()
    out, n = builder.pointer("int32", name="Out"), tir.SizeVar("n", "int32")
    for step in range(2):
        with builder.for_range(0, n, name="j") as j:
            a = builder.allocate("int32", n * 2, name=f"A{step}")
            a[j] = j + step
            out[j] = out[j] + a[j]
    with builder.for_range(0, n, name="i") as i:
        b = builder.allocate("int32", i + 1, name="B")
        b[i] = i
        out[i] = out[i] + b[i]
    before = tir.PrimFunc([out.asobject(), n], builder.get())
    after = apply(before, StorageRewrite())
    assert isinstance(after.body, tir.Allocate)
    assert [found.buffer_var.name for found in nodes_of(after.body, tir.Allocate)] == ["B", "A0"]
    agree(before, after, np.zeros(6, "int32"), 6)


def test_different_element_types_do_not_share(apply, nodes_of):
    """Memory is shared among buffers of one element type."""
    builder = tir.ir_builder.create()
    out = builder.pointer("float32", name="Out")
    for dtype in ("float32", "int32"):
        with builder.for_range(0, 8, name="j") as j:
            a = builder.allocate(dtype, 64, name=dtype)
            a[j] = tir.const(1, dtype)
            out[j] = tir.Cast("float32", a[j])
    after = apply(tir.PrimFunc([out.asobject()], builder.get()), StorageRewrite())
    assert len(nodes_of(after.body, tir.Allocate)) == 2


def test_pointer_binding_keeps_the_buffer_alive(apply, nodes_of):
    """A buffer whose address was bound to a variable lives as long as the variable can be used."""
    out, a, b, p = (tir.Var(name, "handle") for name in ("Out", "A", "B", "p"))
    address = tir.call_intrin("handle", "tir.address_of", tir.Load("int32", a, 0))
    use = tir.SeqStmt(
        [
            tir.Allocate(
                b,
                "int32",
                [64],
                True,
                tir.SeqStmt([tir.Store(b, 1, 0), tir.Store(out, tir.Load("int32", b, 0), 0)]),
            ),
            tir.Store(out, tir.Load("int32", p, 0), 1),
        ]
    )
    body = tir.Allocate(
        a, "int32", [64], True, tir.SeqStmt([tir.Store(a, 5, 0), tir.LetStmt(p, address, use)])
    )
    after = apply(tir.PrimFunc([out], body), StorageRewrite())
    assert len(nodes_of(after.body, tir.Allocate)) == 2


def test_program_without_allocations_is_the_same_object():
    """Nothing to do gives the very same statement."""
    a, i = tir.Var("A", "handle"), tir.Var("i", "int32")
    stmt = tir.For(i, 0, 4, 0, tir.Store(a, i, i))
    assert storage_rewrite(stmt) is stmt
