"""Loops whose copies to shared memory are started some iterations ahead: same numbers, right waits, one barrier."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.ir.expr import Call
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.transform import Sequential
from tilewright.support.errors import LoweringError
from tilewright.target import Target
from tilewright.tir.build_pipeline import mixed_passes
from tilewright.tir.function import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.stmt import Evaluate, For, SeqStmt
from tilewright.tir.transform.lib.statement_rewriter import StmtMutator

HOST = Target("llvm")
N = 48


def product(
    stages: int | None, scope: str = "shared", dtype: str = "float32", lanes: int = 4
) -> tuple[Any, list[Any]]:
    """A product of matrices with tiles of 16 x 16 in shared memory, whose loop over tiles is marked."""
    a, b = te.placeholder((N, N), dtype, name="A"), te.placeholder((N, N), dtype, name="B")
    k = te.reduce_axis((0, N), name="k")
    c = te.compute(
        (N, N), lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), name="C"
    )
    s = te.create_schedule(c.op)
    shared = [s.cache_read(tensor, scope, [c]) for tensor in (a, b)]
    total = s.cache_write(c, "local")
    ty, tx = te.thread_axis("threadIdx.y"), te.thread_axis("threadIdx.x")
    io, ii = s[c].split(c.op.axis[0], factor=16)
    jo, ji = s[c].split(c.op.axis[1], factor=16)
    ii, rows = s[c].split(ii, factor=2)
    ji, columns = s[c].split(ji, factor=2)
    s[c].reorder(io, jo, ii, ji, rows, columns)
    for axis, tag in (
        (io, te.thread_axis("blockIdx.y")),
        (jo, te.thread_axis("blockIdx.x")),
        (ii, ty),
        (ji, tx),
    ):
        s[c].bind(axis, tag)
    s[total].compute_at(s[c], ji)
    ko, ki = s[total].split(s[total].op.reduce_axis[0], factor=16)
    s[total].reorder(ko, ki, *s[total].op.axis)
    if stages is not None:
        s[total].pragma(ko, "software_pipeline", stages)
    for tensor in shared:
        s[tensor].compute_at(s[total], ko)
        rest, lane = s[tensor].split(s[tensor].fuse(*s[tensor].op.axis), factor=lanes)
        rest, column = s[tensor].split(rest, factor=8)
        _, row = s[tensor].split(rest, factor=8)
        s[tensor].bind(column, tx)
        s[tensor].bind(row, ty)
        s[tensor].vectorize(lane)
    return s, [a, b, c]


def threaded(module: IRModule, arch: str = "sm_80") -> PrimFunc:
    """The function with its pipeline and its barriers."""
    passes = [
        each
        for each in mixed_passes(Target(f"cuda -arch={arch}"), HOST)
        if each.name not in ("tir.MakePackedAPI", "tir.SplitHostDevice")
    ]
    made = Sequential(passes)(module)["main"]
    assert isinstance(made, PrimFunc)
    return made


def calls(node: Any, name: str) -> int:
    return sum(isinstance(one, Call) and one.op.name == f"tir.{name}" for one in post_order(node))


def check(function: PrimFunc, dtype: str = "float32") -> None:
    x, y = (np.random.default_rng(seed).standard_normal((N, N)).astype(dtype) for seed in (1, 2))
    z = np.zeros((N, N), "float32")
    interpret(function, x, y, z)
    np.testing.assert_allclose(z, x.astype("float32") @ y.astype("float32"), rtol=1e-3, atol=1e-3)


def the_loop(function: PrimFunc) -> For:
    (found,) = [
        one for one in post_order(function.body) if isinstance(one, For) and calls(one, "tvm_storage_sync")
    ]
    return found


@pytest.mark.parametrize("stages", [2, 3, 5])
@pytest.mark.parametrize("scope", ["shared", "shared.dyn"])
def test_product(stages: int, scope: str) -> None:
    """Also with more stages than iterations; one barrier an iteration, none elsewhere."""
    function = threaded(tvm.lower(*product(stages, scope)))
    check(function)
    assert calls(function.body, "tvm_storage_sync") == calls(the_loop(function), "tvm_storage_sync") == 1
    assert calls(function.body, "ptx_cp_async_commit") == stages
    assert calls(the_loop(function), "ptx_cp_async") == 2


def test_ordinary_copies() -> None:
    """Where there is no asynchronous copy, or none of this size, the stages are filled by stores."""
    for module, arch, dtype in (
        (tvm.lower(*product(3)), "sm_75", "float32"),
        (tvm.lower(*product(3, dtype="float16", lanes=1)), "sm_80", "float16"),
    ):
        function = threaded(module, arch)
        check(function, dtype)
        assert calls(function.body, "ptx_cp_async") == 0 and calls(function.body, "tvm_storage_sync") == 1


class _WithoutWait(StmtMutator):
    def visit_evaluate(self, node: Evaluate) -> Any:
        dropped = isinstance(node.value, Call) and node.value.op.name == "tir.ptx_cp_async_wait"
        return Evaluate(tir.const(0)) if dropped else node


def test_a_missing_wait_is_seen() -> None:
    """The interpreter's copies happen when they are waited for: without the wait the numbers are wrong."""
    function = threaded(tvm.lower(*product(3)))
    broken = function.with_body(_WithoutWait().visit(function.body))
    with pytest.raises(AssertionError):
        check(broken)


class _Annotate(StmtMutator):
    def visit_for(self, node: For) -> Any:
        made = node.map_children(self.visit)
        if isinstance(node.body, SeqStmt) and node.loop_var.name.startswith("k"):
            return made.replace(annotations={"software_pipeline": 3})
        return made


def test_annotation() -> None:
    """``tir.Schedule.annotate`` leaves an annotation of the loop, which means the same as the pragma."""
    module = tvm.lower(*product(None))
    function = module["main"]
    assert isinstance(function, PrimFunc)
    marked = threaded(IRModule({"main": function.with_body(_Annotate().visit(function.body))}))
    check(marked)
    assert calls(marked.body, "ptx_cp_async_wait") == 1


def test_refused() -> None:
    """A loop without copies, and a number of stages that makes no sense."""
    a = te.placeholder((N,), name="A")
    b = te.compute((N,), lambda i: a[i] + 1.0, name="B")
    s = te.create_schedule(b.op)
    outer, inner = s[b].split(b.op.axis[0], factor=32)
    s[b].reorder(inner, outer)
    s[b].bind(inner, te.thread_axis("threadIdx.x"))
    s[b].pragma(outer, "software_pipeline", 2)
    with pytest.raises(
        LoweringError, match="no statement of its body does nothing but copy to shared memory"
    ):
        threaded(tvm.lower(s, [a, b]))
    with pytest.raises(LoweringError, match="the number of stages is 1 to 16, not 99"):
        threaded(tvm.lower(*product(99)))
