"""Parallel loops run every iteration once, on the thread pool, and pass failures on."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import tir
from tilewright.ir import operators
from tilewright.ir.expr import Broadcast, FloatImm, IntImm, Load, Ramp, StringImm, Var
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.errors import CodegenError
from tilewright.tir import op
from tilewright.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    Evaluate,
    For,
    ForKind,
    LetStmt,
    Store,
    stmt_seq,
)


def test_any_name():
    """A function with a parallel loop may have a name that LLVM takes in quotes only."""
    y, i = tir.decl_buffer((8,), name="y"), Var("i")
    body = For(i, 0, 8, ForKind.PARALLEL, Store(y.data, FloatImm("float32", 1.0), i))
    function = tir.PrimFunc([y], body).with_attr("global_symbol", "fill (1, 2)_[x]")
    result = tvm.nd.array(np.zeros(8, "float32"))
    tvm.build(tvm.IRModule({"fill (1, 2)_[x]": function}), target="llvm")["fill (1, 2)_[x]"](result)
    np.testing.assert_array_equal(result.numpy(), np.ones(8))


@pytest.mark.parametrize("pattern", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 1000])
def test_every_iteration_runs_once(kit, pattern, count):
    """Shares and turns alike cover the range exactly, whatever the number of threads."""
    y, begin, n, i = kit.buffer("y", 1024, "int32"), Var("begin"), Var("n"), Var("i")
    store = Store(y.data, Load("int32", y.data, i) + i, i)
    body = AttrStmt(IntImm("int32", 0), "pragma_parallel_stride_pattern", 1, store) if pattern else store
    module = kit.build([y, begin, n], For(i, begin, n, ForKind.PARALLEL, body))
    result = np.zeros(1024, "int32")
    module["f"](result, 10, count)
    expected = np.zeros(1024)
    expected[10 : 10 + count] = np.arange(10, 10 + count)
    np.testing.assert_array_equal(result, expected)


def test_the_body_sees_its_surroundings(kit):
    """Pointers, scalars, vectors and floats from outside reach the body; its own memory belongs to each task."""
    x, y, scale = kit.buffer("x", 512), kit.buffer("y", 512), Var("scale", "float32")
    i, k, offset = Var("i"), Var("k"), Var("offset", "float32x8")
    local = Var("local", PointerType(PrimType("float32")))
    lanes, row = Ramp(0, 1, 8), Ramp(i * 8, 1, 8)
    body = Allocate(local, "float32", [8], True, stmt_seq(
        Store(local, Load("float32x8", x.data, row) * Broadcast(scale, 8), lanes),
        For(k, 0, 2, ForKind.SERIAL, Store(local, Load("float32x8", local, lanes) + offset, lanes)),
        Store(y.data, Load("float32x8", local, lanes), row),
    ))  # fmt: skip
    loop = LetStmt(offset, Broadcast(FloatImm("float32", 0.5), 8), For(i, 0, 64, ForKind.PARALLEL, body))
    given, result = np.random.default_rng(0).random(512, "float32"), np.zeros(512, "float32")
    kit.build([x, y, scale], loop)["f"](given, result, 3.0)
    np.testing.assert_allclose(result, given * 3 + 1, rtol=1e-6)


def test_a_failure_inside_reaches_the_caller(kit):
    """The first assertion that fails in a task is the function's error."""
    y, i = kit.buffer("y", 64, "int32"), Var("i")
    text = op.call_intrin("handle", "tir.format_message", "ValueError: iteration {0} is bad", i)
    check = AssertStmt(operators.not_equal(i, 40), text, Store(y.data, 1, i))
    module = kit.build([y], For(i, 0, 64, ForKind.PARALLEL, check))
    with pytest.raises(ValueError, match="iteration 40 is bad"):
        module["f"](np.zeros(64, "int32"))


def test_parallel_inside_parallel_runs_serially(kit):
    """Only the outer loop is spread over threads."""
    y, i, j = kit.buffer("y", 64, "int32"), Var("i"), Var("j")
    inner = For(j, 0, 8, ForKind.PARALLEL, Store(y.data, i * 8 + j, i * 8 + j))
    module = kit.build([y], For(i, 0, 8, ForKind.PARALLEL, inner))
    result = np.zeros(64, "int32")
    module["f"](result)
    np.testing.assert_array_equal(result, np.arange(64))
    assert module.get_source("unoptimized").count("call i32 @tilewright_parallel_launch") == 1


def test_returning_from_a_task_is_refused(kit):
    """A task cannot end the function around it."""
    y, i = kit.buffer("y", 8, "int32"), Var("i")
    with pytest.raises(CodegenError, match="parallel loop's body cannot return"):
        kit.build(
            [y],
            For(i, 0, 8, ForKind.PARALLEL, Evaluate(op.call_intrin("int32", "tir.ret", IntImm("int32", 0)))),
        )


def test_messages_of_assertions_must_be_strings(kit):
    """The kind and the words of an error are constants."""
    n = Var("n")
    with pytest.raises(CodegenError, match="must be a string"):
        kit.build([n], AssertStmt(n > 0, IntImm("int32", 3), Evaluate(0)))
    with pytest.raises(AssertionError, match="plain"):
        kit.build([n], AssertStmt(n > 0, StringImm("plain"), Evaluate(0)))["f"](0)
