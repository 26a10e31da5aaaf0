"""Long sums of floats are added up in blocks; nothing else changes."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir
from tilewright.ir.functor import post_order
from tilewright.tir.transform.block_long_sums import BLOCK, LONG, block_long_sums

X, Y, Z = (tir.Var(name, tvm.ir.PointerType(tvm.ir.PrimType("float32"))) for name in "XYZ")
K, J, N = (tir.Var(name, "int32") for name in "kjn")


def summing(extent, index=0, value=None, lanes=1, body=None):
    """for k: Y[index] += value, which is X[k] if nothing else is said."""
    place = tir.Ramp(index, 1, lanes) if lanes > 1 else tir.const(0, "int32") + index
    dtype = f"float32x{lanes}" if lanes > 1 else "float32"
    if value is None:
        value = tir.Load(dtype, X, tir.Ramp(K * lanes, 1, lanes) if lanes > 1 else K)
    store = tir.Store(Y, tir.Load(dtype, Y, place) + value, place)
    return tir.For(K, 0, extent, 0, body(store) if body else store)


def blocked(stmt):
    return block_long_sums(stmt, [X, Y, Z])


def loops(stmt):
    """The extents of the loops, from the outside in, as text."""
    found = [str(part.extent) for part in post_order(stmt) if isinstance(part, tir.For)]
    return found[::-1]


def test_a_long_sum_is_made_of_blocks():
    """Every level has at most so many terms that little is lost; a remainder is a shorter block."""
    assert loops(blocked(summing(LONG + BLOCK))) == ["3", str(BLOCK)]
    assert loops(blocked(summing(1 << 22))) == ["64", "256", "256"]
    assert loops(blocked(summing(1001, lanes=16)))[0] == "4"
    assert "min" in loops(blocked(summing(1001)))[1].lower()


@pytest.mark.parametrize(
    "unchanged",
    [
        summing(LONG),
        summing(1 << 20, index=K),
        summing(1 << 20, value=tir.Load("float32", Y, K)),
        summing(1 << 20, value=tir.Load("float32", Y, 0) * tir.Load("float32", X, K)),
        summing(1 << 20, body=lambda store: tir.SeqStmt([store, tir.Store(Z, tir.Load("float32", Y, 0), K)])),
        summing(1 << 20, body=lambda store: tir.For(J, 0, 4, tir.ForKind.PARALLEL, store)),
        summing(
            1 << 20, body=lambda store: tir.SeqStmt([store, tir.Evaluate(tir.call_extern("int32", "f"))])
        ),
    ],
    ids=[
        "short",
        "another place each time",
        "reads itself",
        "a product of the sum",
        "read",
        "parallel",
        "a call",
    ],
)
def test_what_is_not_a_long_sum_stays(unchanged):
    """Only a loop that does nothing to an element but add to it, often, changes."""
    assert blocked(unchanged) is unchanged


def test_arguments_that_may_overlap_stay():
    """Without the promise that buffers are distinct, the term may be the sum itself, under another name."""
    stmt = summing(1 << 20)
    assert block_long_sums(stmt, []) is stmt


def test_integers_stay():
    """They lose nothing."""
    A = tir.Var("A", tvm.ir.PointerType(tvm.ir.PrimType("int32")))
    place = tir.const(0, "int32")
    stmt = tir.For(K, 0, 1 << 20, 0, tir.Store(A, tir.Load("int32", A, place) + K, place))
    assert block_long_sums(stmt, [A]) is stmt


def test_a_dynamic_length_is_asked_about():
    """A short sum, the common case, runs in the plain loop."""
    made = blocked(summing(N))
    assert isinstance(made, tir.IfThenElse)
    assert loops(made.else_case) == ["n"]
    assert len(loops(made.then_case)) == 3


def test_nested_loops_count_together():
    """2,000 rows of 300 terms: each row is a block, and the rows are blocks of a few."""
    inner = summing(300)
    rows = blocked(tir.For(J, 0, 2000, 0, inner))
    assert loops(rows)[-1] == "300"
    assert max(int(extent) for extent in loops(rows) if extent.isdigit()) <= LONG


@pytest.mark.parametrize("length", [LONG + 1, 3 * BLOCK, 65537, 300_000])
@pytest.mark.parametrize("target", ["llvm", "llvm -mcpu=x86-64"])
def test_the_sum_is_right_to_the_last_term(length, target):
    """Whole numbers, which float32 holds exactly, so that a term left out or added twice shows."""
    x = te.placeholder((length, 3), name="x")
    k = te.reduce_axis((0, length), name="k")
    y = te.compute((3,), lambda i: te.sum(x[k, i], axis=k), name="y")
    function = tvm.build(te.create_schedule(y.op), [x, y], target)
    given = np.random.default_rng(length).integers(-20, 20, (length, 3)).astype("float32")
    result = tvm.nd.empty((3,))
    function(tvm.nd.array(given), result)
    np.testing.assert_array_equal(result.numpy(), given.astype("float64").sum(0).astype("float32"))


def test_products_of_dynamic_length():
    """Both branches of a dynamic length, at its edges."""
    n = te.var("n")
    a, b = te.placeholder((n,), name="a"), te.placeholder((n,), name="b")
    k = te.reduce_axis((0, n), name="k")
    y = te.compute((1,), lambda i: te.sum(a[k] * b[k], axis=k), name="y")
    function = tvm.build(te.create_schedule(y.op), [a, b, y], "llvm")
    for length in (0, 1, LONG, LONG + 1, 2 * BLOCK * BLOCK + 7):
        given = np.random.default_rng(length).integers(-4, 4, (2, length)).astype("float32")
        result = tvm.nd.empty((1,))
        function(tvm.nd.array(given[0]), tvm.nd.array(given[1]), result)
        assert result.numpy()[0] == given[0].astype("float64") @ given[1]
