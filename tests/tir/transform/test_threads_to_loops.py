"""Thread indices as loops on targets without threads."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.support.errors import CodegenError


def kernel(size: int = 20) -> tuple[te.Schedule, te.Tensor, te.Tensor]:
    """Two stages, each over blocks and threads of its own."""
    a = te.placeholder((size,), name="A")
    b = te.compute((size,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((size,), lambda i: b[i] * b[size - 1 - i], name="C")
    s = te.create_schedule(c.op)
    block, thread = te.thread_axis("blockIdx.x"), te.thread_axis("threadIdx.x")
    for tensor in (b, c):
        outer, inner = s[tensor].split(tensor.op.axis[0], factor=8)
        s[tensor].bind(outer, block)
        s[tensor].bind(inner, thread)
    return s, a, c


def loops(function: tir.PrimFunc) -> list[tir.For]:
    """The loops of a function."""
    found: list[object] = []
    tir.stmt_functor.post_order_visit(function.body, found.append)
    return [node for node in found if isinstance(node, tir.For)]


def test_loops_take_the_place_of_threads() -> None:
    """Each kernel becomes a nest of loops with variables of its own; nothing bound is left."""
    s, a, c = kernel()
    lowered = tvm.lower(s, [a, c])
    module = tir.transform.ThreadsToLoops()(lowered)
    text = str(module)
    assert "launch_thread" in str(lowered) and "launch_thread" not in text
    assert sorted(loop.extent.value for loop in loops(module["main"])) == [3, 3, 8, 8]
    assert tir.analysis.verify_ssa(module["main"])


def test_the_result_is_that_of_the_threads() -> None:
    """Built for the host, two kernels in a row run one after the other."""
    s, a, c = kernel()
    values, result = np.random.rand(20).astype("float32"), np.zeros(20, "float32")
    tvm.build(s, [a, c], "llvm")(values, result)
    np.testing.assert_allclose(result, (values + 1) * (values + 1)[::-1], rtol=1e-6)


def test_an_index_inside_of_itself_is_the_same_index() -> None:
    """A thread index that runs around a statement and is bound inside it again, by another axis, runs once."""
    buffer = tir.decl_buffer((4,), "int32", "B")
    outer, inner = te.thread_axis((0, 4), "threadIdx.x"), te.thread_axis((0, 4), "threadIdx.x", "again")
    store = tir.Store(buffer.data, inner.var + outer.var, outer.var)
    body = tir.AttrStmt(outer, "thread_extent", 4, tir.AttrStmt(inner, "thread_extent", 4, store))
    function = tir.PrimFunc([buffer], body).with_attr("global_symbol", "f")
    assert len(loops(tir.transform.ThreadsToLoops()(tvm.IRModule({"f": function}))["f"])) == 1
    result = np.zeros(4, "int32")
    tvm.build(function, target="llvm")(result)
    assert result.tolist() == [0, 2, 4, 6]


def test_threads_that_need_one_another_are_refused() -> None:
    """Shared memory needs barriers, which loops have not: the code generator says so."""
    a = te.placeholder((16,), name="A")
    b = te.compute((16,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((16,), lambda i: b[15 - i], name="C")
    s = te.create_schedule(c.op)
    thread = te.thread_axis("threadIdx.x")
    outer, inner = s[c].split(c.op.axis[0], nparts=1)
    s[c].bind(outer, te.thread_axis("blockIdx.x"))
    s[c].bind(inner, thread)
    s[b].set_scope("shared")
    s[b].compute_at(s[c], outer)
    s[b].bind(b.op.axis[0], thread)
    with pytest.raises(CodegenError, match="bound to a GPU thread"):
        tvm.build(s, [a, c], "llvm")
