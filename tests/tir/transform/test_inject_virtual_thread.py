"""Virtual threads run interleaved in one thread."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.inject_virtual_thread import InjectVirtualThread, inject_virtual_thread


def axis(count, tag="vthread"):
    """A virtual thread axis."""
    return tir.IterVar((0, count), "vt", 1, tag)


def as_loop(function):
    """The same function with each virtual thread axis as a plain loop: what it must compute."""

    def loop(node):
        if node.attr_key != "virtual_thread":
            return None
        return tir.For(node.node.var, 0, node.value, 0, node.body)

    return function.with_body(tir.stmt_functor.ir_transform(function.body, None, loop, ["tir.AttrStmt"]))


@pytest.mark.parametrize(("count", "loops"), [(2, 1), (20, 2)])
def test_private_buffer_gets_one_copy_a_thread(apply, agree, nodes_of, count, loops):
    """A buffer that depends on the thread is expanded; few threads are written out, many get a loop."""
    builder = tir.ir_builder.create()
    a, c = builder.pointer("int32", name="A"), builder.pointer("int32", name="C")
    thread = axis(count)
    builder.scope_attr(thread, "virtual_thread", count)
    with builder.for_range(0, 10, name="i") as i:
        b = builder.allocate("int32", 4, name="B", scope="shared")
        b[i % 4] = a[i * count + thread]
        c[thread * 10 + i] = b[i % 4] + 3
    before = tir.PrimFunc([a.asobject(), c.asobject()], builder.get())
    after = apply(before, InjectVirtualThread())
    (allocate,) = nodes_of(after.body, tir.Allocate)
    assert [extent.value for extent in allocate.extents] == [count, 4]
    assert len({id(found) for found in nodes_of(after.body, tir.For)}) == (1 if loops == 1 else 3)
    assert not nodes_of(after.body, tir.AttrStmt)
    agree(as_loop(before), after, np.arange(10 * count, dtype="int32"), np.zeros(10 * count, "int32"))


@pytest.mark.parametrize(("tag", "copies"), [("vthread", 1), ("cthread", 2)])
def test_sharing_follows_the_tag(apply, nodes_of, tag, copies):
    """A buffer that does not depend on the thread is shared by vthreads and copied for cthreads."""
    builder = tir.ir_builder.create()
    a, c = builder.pointer("int32", name="A"), builder.pointer("int32", name="C")
    thread = axis(2, tag)
    builder.scope_attr(thread, "virtual_thread", 2)
    with builder.for_range(0, 10, name="i") as i:
        b = builder.allocate("int32", 4, name="B", scope="shared")
        b[i % 4] = a[i]
        c[thread * 10 + i] = b[i % 4]
    after = apply(tir.PrimFunc([a.asobject(), c.asobject()], builder.get()), InjectVirtualThread())
    (allocate,) = nodes_of(after.body, tir.Allocate)
    stores = [found for found in nodes_of(after.body, tir.Store) if found.buffer_var is allocate.buffer_var]
    assert len(stores) == copies and len(allocate.extents) == copies


def test_dependence_through_memory(apply, agree, nodes_of):
    """A buffer filled from a private buffer is private too."""
    builder = tir.ir_builder.create()
    a, c = builder.pointer("int32", name="A"), builder.pointer("int32", name="C")
    thread = axis(3)
    builder.scope_attr(thread, "virtual_thread", 3)
    first = builder.allocate("int32", 8, name="first")
    second = builder.allocate("int32", 8, name="second")
    with builder.for_range(0, 8, name="i") as i:
        first[i] = a[i] + thread
    with builder.for_range(0, 8, name="j") as j:
        second[j] = first[7 - j]
    with builder.for_range(0, 8, name="k") as k:
        c[thread * 8 + k] = second[k]
    before = tir.PrimFunc([a.asobject(), c.asobject()], builder.get())
    after = apply(before, InjectVirtualThread())
    assert [len(found.extents) for found in nodes_of(after.body, tir.Allocate)] == [2, 2]
    agree(as_loop(before), after, np.arange(8, dtype="int32"), np.zeros(24, "int32"))


def test_condition_and_extent_on_the_thread(apply, agree):
    """A branch or loop that depends on the thread is repeated as a whole."""
    builder = tir.ir_builder.create()
    c = builder.pointer("int32", name="C")
    thread = axis(4)
    builder.scope_attr(thread, "virtual_thread", 4)
    with builder.if_scope(thread.var > 1):
        c[thread] = 5
    with builder.for_range(0, thread.var + 1, name="i") as i:
        c[4 + thread] = c[4 + thread] + i
    before = tir.PrimFunc([c.asobject()], builder.get())
    after = apply(before, InjectVirtualThread())
    (result,) = agree(as_loop(before), after, np.zeros(8, "int32"))
    np.testing.assert_array_equal(result, [0, 0, 5, 5, 0, 1, 3, 6])


def test_nested_virtual_threads(apply, agree, nodes_of):
    """Two axes, one inside the other, multiply."""
    builder = tir.ir_builder.create()
    c = builder.pointer("int32", name="C")
    outer, inner = axis(2), tir.IterVar((0, 3), "vu", 1, "vthread.y")
    builder.scope_attr(outer, "virtual_thread", 2)
    builder.scope_attr(inner, "virtual_thread", 3)
    b = builder.allocate("int32", 1, name="B")
    b[0] = outer.var * 10 + inner
    c[outer.var * 3 + inner] = b[0]
    before = tir.PrimFunc([c.asobject()], builder.get())
    after = apply(before, InjectVirtualThread())
    assert len(nodes_of(after.body, tir.Store)) == 12
    agree(as_loop(before), after, np.zeros(6, "int32"))


def test_access_pointer_points_to_the_own_copy(nodes_of):
    """``tvm_access_ptr`` of an expanded buffer is moved; a bare pointer in a call is an error."""
    thread, b = axis(2), tir.Var("B", "handle")
    kind = tir.call_intrin("int32", "tir.type_annotation")
    pointer = tir.call_intrin("handle", "tir.tvm_access_ptr", kind, b, 0, 4, 2)
    fill = tir.Evaluate(tir.call_extern("int32", "fill", pointer, thread.var))
    stmt = tir.AttrStmt(thread, "virtual_thread", 2, tir.Allocate(b, "int32", [4], True, fill))
    made = inject_virtual_thread(stmt)
    offsets = [found.args[2] for found in nodes_of(made, tir.Call) if found.op.name == "tir.tvm_access_ptr"]
    assert [offset.value for offset in offsets] == [0, 4]
    bare = tir.Evaluate(tir.call_extern("int32", "fill", b, thread.var))
    with pytest.raises(LoweringError, match="access_ptr"):
        inject_virtual_thread(
            tir.AttrStmt(thread, "virtual_thread", 2, tir.Allocate(b, "int32", [4], True, bare))
        )
