"""Unrolled loops become copies of their body with the index put in."""

import numpy as np
import pytest

from tilewright import tir
from tilewright.ir.pass_config import UnrollLoopConfig
from tilewright.ir.transform import PassContext
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.unroll_loop import UnrollLoop, unroll_loops


def nest(kind="serial"):
    """for i in n, for j in 8: A[i * 8 + j] = A[i * 8 + j] + 1"""
    builder = tir.ir_builder.create()
    n = tir.SizeVar("n", "int32")
    a = builder.pointer("int64", name="A")
    with builder.for_range(0, n, name="i") as i, builder.for_range(0, 8, name="j", kind=kind) as j:
        a[i * 8 + j] = a[i * 8 + j] + tir.const(1, "int64")
    return tir.PrimFunc([a.asobject(), n], builder.get())


def test_unrolled_kind_is_copied(apply, agree):
    """A loop of kind UNROLLED becomes a sequence of eight stores with different constants."""
    before = nest("unroll")
    after = apply(before, UnrollLoop())
    assert isinstance(after.body.body, tir.SeqStmt) and len(after.body.body) == 8
    assert after.body.body[3].index.b.value == 3
    agree(before, after, np.arange(24, dtype="int64"), 3)


def test_serial_loops_follow_the_options(apply, agree):
    """``auto_max_step`` allows serial loops; without ``explicit_unroll`` they are only marked."""
    before = nest()
    assert apply(before, UnrollLoop()).body is before.body
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}}):
        after = apply(before, UnrollLoop())
    assert len(after.body.body) == 8
    agree(before, after, np.arange(16, dtype="int64"), 2)
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 8, "explicit_unroll": False}}):
        after = apply(before, UnrollLoop())
    assert after.body.body.kind == tir.ForKind.UNROLLED
    with PassContext(config={"tir.UnrollLoop": {"auto_max_step": 7}}):
        assert apply(before, UnrollLoop()).body is before.body


def test_pragmas_override_the_options(apply):
    """``pragma_auto_unroll_max_step`` around a nest stands for the option, and is gone afterwards."""
    before = nest()
    body = tir.AttrStmt(tir.StringImm("none"), "pragma_auto_unroll_max_step", 16, before.body)
    after = apply(before.with_body(body), UnrollLoop())
    assert isinstance(after.body, tir.For) and len(after.body.body) == 8
    body = tir.AttrStmt(tir.StringImm("none"), "pragma_unroll_explicit", 0, body)
    after = apply(before.with_body(body), UnrollLoop())
    assert after.body.body.kind == tir.ForKind.UNROLLED


def test_largest_nest_within_the_limit(nodes_of):
    """Loops are unrolled from the inside out as long as the number of steps stays within the limit."""
    a, i, j, k = tir.Var("A", "handle"), *(tir.Var(name, "int32") for name in "ijk")
    inner = tir.For(k, 0, 2, 0, tir.Store(a, 1, i * 8 + j * 2 + k))
    stmt = tir.For(i, 0, 4, 0, tir.For(j, 0, 4, 0, inner))
    made = unroll_loops(stmt, UnrollLoopConfig(auto_max_step=8))
    assert len(nodes_of(made, tir.For)) == 1 and len(made.body) == 8
    assert isinstance(unroll_loops(stmt, UnrollLoopConfig(auto_max_step=32)), tir.SeqStmt)


def test_loop_start_is_added(apply, agree):
    """A loop that starts at two gives the indices two and three."""
    a, i = tir.Var("A", "handle"), tir.Var("i", "int32")
    before = tir.PrimFunc([a], tir.For(i, 2, 2, tir.ForKind.UNROLLED, tir.Store(a, i, i)))
    after = apply(before, UnrollLoop())
    assert [store.index.value for store in after.body.seq] == [2, 3]
    agree(before, after, np.zeros(4, "int32"))


def test_extent_of_zero_and_of_one():
    """A loop without iterations leaves a no-op, one with a single iteration its body."""
    a, i = tir.Var("A", "handle"), tir.Var("i", "int32")
    assert isinstance(unroll_loops(tir.For(i, 0, 0, tir.ForKind.UNROLLED, tir.Store(a, i, i))), tir.Evaluate)
    assert isinstance(unroll_loops(tir.For(i, 0, 1, tir.ForKind.UNROLLED, tir.Store(a, i, i))), tir.Store)


def test_copies_define_their_own_variables(apply, agree, nodes_of):
    """A binding, allocation or loop inside gets a variable of its own in every copy."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int32", name="A")
    with builder.for_range(0, 3, name="i", kind="unroll") as i:
        b = builder.allocate("int32", 4, name="B")
        with builder.for_range(0, 4, name="j") as j:
            b[j] = i * 4 + j
        a[i] = b[3]
    before = tir.PrimFunc([a.asobject()], builder.get())
    after = apply(before, UnrollLoop())
    assert len({id(found.buffer_var) for found in nodes_of(after.body, tir.Allocate)}) == 3
    assert len({id(found.loop_var) for found in nodes_of(after.body, tir.For)}) == 3
    agree(before, after, np.zeros(3, "int32"))


def test_unknown_extent_is_an_error():
    """A loop of kind UNROLLED needs a constant extent; the error names the loop."""
    a, i, n = tir.Var("A", "handle"), tir.Var("row", "int32"), tir.Var("n", "int32")
    with pytest.raises(LoweringError, match="row cannot be unrolled"):
        unroll_loops(tir.For(i, 0, n, tir.ForKind.UNROLLED, tir.Store(a, i, i)))


def test_one_iteration_is_its_body(apply, agree):
    """With an extent of one allowed, a loop of one iteration goes whatever loops are inside."""
    builder = tir.ir_builder.create()
    a = builder.pointer("int64", name="A")
    with builder.for_range(0, 1, name="i") as i:
        a[i] = tir.const(3, "int64")
        with builder.for_range(0, 10, name="j") as j:
            a[j + 1] = a[i] + tir.const(1, "int64")
    before = tir.PrimFunc([a.asobject()], builder.get())
    after = apply(before, UnrollLoop(auto_max_extent=1, explicit_unroll=False))
    assert isinstance(after.body[0], tir.Store) and isinstance(after.body[1], tir.For)
    agree(before, after, np.zeros(11, "int64"))
