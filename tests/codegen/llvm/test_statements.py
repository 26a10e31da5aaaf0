"""Statements: loops, conditions, allocation, assertions."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.expr import Broadcast, FloatImm, IntImm, IterVar, Load, Ramp, StringImm, Var
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
    IfThenElse,
    LetStmt,
    SeqStmt,
    Store,
    While,
    stmt_seq,
)


def pointer(name: str, dtype: str = "int32") -> Var:
    """A variable that points to memory."""
    return Var(name, PointerType(PrimType(dtype)))


@pytest.mark.parametrize("index_type", ["int32", "int64"])
def test_loops_over_any_range(kit, index_type):
    """Loops run from their minimum for their extent, not at all for an extent of zero or less."""
    y = kit.buffer("y", 32, "int32")
    begin, extent, i = Var("begin", index_type), Var("extent", index_type), Var("i", index_type)
    module = kit.build(
        [y, begin, extent], For(i, begin, extent, ForKind.SERIAL, Store(y.data, i.astype("int32"), i))
    )
    for first, count in ((0, 32), (5, 7), (31, 1), (3, 0), (3, -2)):
        result = np.full(32, -1, "int32")
        module["f"](result, first, count)
        expected = np.full(32, -1)
        expected[first : first + max(count, 0)] = np.arange(first, first + max(count, 0))
        np.testing.assert_array_equal(result, expected)


def test_nested_loops_conditions_and_lets(kit):
    """Values defined inside a loop are of that iteration; either branch of a condition runs alone."""
    y = kit.buffer("y", 64, "int32")
    i, j, k = Var("i"), Var("j"), Var("k")
    inner = LetStmt(
        k,
        i * 8 + j,
        IfThenElse(op.likely(i < j), Store(y.data, k, k), Store(y.data, IntImm("int32", 0) - k, k)),
    )
    body = For(i, 0, 8, ForKind.SERIAL, For(j, 0, 8, ForKind.UNROLLED, inner))
    result = np.zeros(64, "int32")
    kit.build([y], body)["f"](result)
    rows, columns = np.divmod(np.arange(64), 8)
    np.testing.assert_array_equal(result, np.where(rows < columns, np.arange(64), -np.arange(64)))


def test_while_reads_its_condition_each_time(kit):
    """A while loop sees what its body stores."""
    y, state = kit.buffer("y", 1, "int32"), pointer("state")
    body = SeqStmt([
        Store(state, 1, 0),
        While(Load("int32", state, 0) < 100, Store(state, Load("int32", state, 0) * 3, 0)),
        Store(y.data, Load("int32", state, 0), 0),
    ])  # fmt: skip
    result = np.zeros(1, "int32")
    kit.build([y], Allocate(state, "int32", [1], True, body))["f"](result)
    assert result[0] == 243


def test_small_buffers_become_registers(kit):
    """A buffer that is only ever used at constant places leaves no trace of memory behind."""
    x, y, local = kit.buffer("x", 64), kit.buffer("y", 8), pointer("local", "float32")
    k = Var("k")
    lanes = Ramp(0, 1, 8)
    body = SeqStmt([
        Store(local, Broadcast(FloatImm("float32", 0.0), 8), lanes),
        For(k, 0, 8, ForKind.SERIAL,
            Store(local, Load("float32x8", local, lanes) + Load("float32x8", x.data, Ramp(k * 8, 1, 8)), lanes)),
        Store(y.data, Load("float32x8", local, lanes), lanes),
    ])  # fmt: skip
    module = kit.build([x, y], Allocate(local, "float32", [8], True, body))
    given, result = np.random.default_rng(0).random(64, "float32"), np.zeros(8, "float32")
    module["f"](given, result)
    np.testing.assert_allclose(result, given.reshape(8, 8).sum(0), rtol=1e-6)
    assert "alloca [32 x i8]" in module.get_source("unoptimized")
    assert "alloca [32 x i8]" not in module.get_source("ll")


@pytest.mark.parametrize(
    ("message", "error", "text"),
    [
        ("ValueError: n is wrong", ValueError, "n is wrong"),
        ("TypeError: bad", TypeError, "bad"),
        ("something: odd", AssertionError, "something: odd"),
    ],
)
def test_assertions_raise(kit, message, error, text):
    """A failed assertion raises the error that its message names, and the statements after it do not run."""
    y, n = kit.buffer("y", 1, "int32"), Var("n")
    module = kit.build([y, n], AssertStmt(n > 0, StringImm(message), Store(y.data, 1, 0)))
    result = np.zeros(1, "int32")
    with pytest.raises(error, match=text):
        module["f"](result, 0)
    assert result[0] == 0
    module["f"](result, 1)
    assert result[0] == 1


def test_assertions_show_values(kit):
    """The values at the time of failure stand in the message."""
    n = Var("n")
    text = op.call_intrin("handle", "tir.format_message", "ValueError: n is {0}, twice that is {1}", n, n * 2)
    module = kit.build([n], AssertStmt(n < 0, text, Evaluate(0)))
    with pytest.raises(ValueError, match="n is 21, twice that is 42"):
        module["f"](21)


def test_what_a_cpu_cannot_do_is_refused(kit):
    """GPU threads, vector loops that were not lowered and buffers without a size name themselves in the error."""
    y, i = kit.buffer("y", 8, "int32"), Var("i")
    store = Store(y.data, i, i)
    thread = IterVar((0, 8), i, IterVar.ThreadIndex, "threadIdx.x")
    with pytest.raises(CodegenError, match="GPU thread"):
        kit.build([y], AttrStmt(thread, "thread_extent", 8, store))
    with pytest.raises(CodegenError, match="the loop i is vectorized"):
        kit.build([y], For(i, 0, 8, ForKind.VECTORIZED, store))
    with pytest.raises(CodegenError, match="bound to a GPU thread"):
        kit.build([y], For(i, 0, 8, ForKind.THREAD_BINDING, store, thread))


def test_many_statements(kit):
    """Two thousand stores in one block compile and run."""
    y = kit.buffer("y", 2000, "int32")
    result = np.zeros(2000, "int32")
    kit.build([y], stmt_seq([Store(y.data, k * 7, k) for k in range(2000)]), "llvm -opt-level=1")["f"](result)
    np.testing.assert_array_equal(result, np.arange(2000) * 7)
