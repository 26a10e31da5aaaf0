"""Marked loops ask for the next panel while they read one."""

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te, tir, topi
from tilewright.ir.functor import post_order
from tilewright.tir.transform.prefetch_panels import PRAGMA, prefetch_panels

W, X, Y = (tir.Var(name, tvm.ir.PointerType(tvm.ir.PrimType("float32"))) for name in "WXY")
PANEL, ROW, K = (tir.Var(name, "int32") for name in ("panel", "row", "k"))


def product(index, panels=4, rows=3, depth=8, mark=PRAGMA):
    """for panel, row: for k: Y[row] += X[row, k] * W[index], sixteen numbers at a time."""
    place = tir.Ramp(ROW * 64 + PANEL * 16, 1, 16)
    total = tir.Load("float32x16", Y, place) + tir.Broadcast(
        tir.Load("float32", X, ROW * depth + K), 16
    ) * tir.Load("float32x16", W, tir.Ramp(index, 1, 16))
    inner = tir.For(K, 0, depth, 0, tir.Store(Y, total, place))
    body = tir.For(ROW, 0, rows, 0, tir.AttrStmt(K, mark, 1, inner))
    return tir.For(PANEL, 0, panels, tir.ForKind.PARALLEL, body)


def hints(stmt):
    """The addresses that are asked for, as functions of the three loops."""
    calls = [
        part
        for part in post_order(stmt)
        if isinstance(part, tir.Call) and getattr(part.op, "name", "") == "tir.prefetch"
    ]
    return [call.args[0].args[0].index for call in calls]


def at(index, panel, row, k):
    """The value of an address in one iteration."""
    values = {PANEL: panel, ROW: row, K: k}
    given = {key: tir.const(value, "int32") for key, value in values.items()}
    return int(tvm.arith.Analyzer().simplify(tir.stmt_functor.substitute(index, given)))


def test_all_of_the_next_panel_and_nothing_else():
    """Over the rows every line of the next panel is asked for, in order; the last panel asks for itself, so that no
    address lies outside the weights."""
    (index,) = hints(prefetch_panels(product(PANEL * 128 + K * 16), 64))
    for panel in range(4):
        after = min(panel + 1, 3)
        asked = [at(index, panel, row, k) for row in range(3) for k in range(8)]
        assert asked == sorted(asked)
        assert {address // 16 for address in asked} == set(range(after * 8, after * 8 + 8))


def test_panels_that_lie_apart():
    """What lies between panels is not asked for."""
    (index,) = hints(prefetch_panels(product(PANEL * 640 + K * 16), 64))
    asked = {at(index, 1, row, k) // 16 for row in range(3) for k in range(8)}
    assert asked == set(range(80, 88))


def test_several_lines_at_a_time():
    """Where a line is shorter than an iteration's share, the iteration asks for several."""
    found = hints(prefetch_panels(product(PANEL * 128 + K * 16, rows=2), 16))
    assert len(found) == 2
    asked = {at(index, 0, row, k) // 4 for index in found for row in range(2) for k in range(8)}
    assert asked == set(range(32, 64))


def test_panels_beside_each_other():
    """A tile that is two panels wide asks for both of the next two."""
    second = PANEL * 256 + K * 16 + 128
    whole = product(PANEL * 256 + K * 16, panels=2)
    row = whole.body
    inner = row.body.body
    beside = tir.Store(Y, tir.Load("float32x16", W, tir.Ramp(second, 1, 16)), tir.Ramp(ROW * 64 + 32, 1, 16))
    inner = tir.For(K, 0, 8, 0, tir.SeqStmt([inner.body, beside]))
    whole = tir.For(PANEL, 0, 2, 0, tir.For(ROW, 0, 3, 0, tir.AttrStmt(K, PRAGMA, 1, inner)))
    found = hints(prefetch_panels(whole, 64))
    assert len(found) == 2
    asked = {at(index, 0, row, k) // 16 for index in found for row in range(3) for k in range(8)}
    assert asked == set(range(16, 32))


def test_the_loop_that_asks():
    """Where few lines are left for each iteration of the innermost loop, one around it asks."""
    outer = tir.Var("c", "int32")
    body = tir.Store(
        Y, tir.Load("float32x16", W, tir.Ramp(PANEL * 512 + outer * 128 + K * 16, 1, 16)), tir.Ramp(0, 1, 16)
    )
    inner = tir.AttrStmt(K, PRAGMA, 1, tir.For(K, 0, 8, 0, body))
    whole = tir.For(PANEL, 0, 4, 0, tir.For(ROW, 0, 16, 0, tir.For(outer, 0, 4, 0, inner)))
    made = prefetch_panels(whole, 64)
    (index,) = hints(made)
    assert not any(part is K for part in post_order(index))
    around = made.body.body
    assert around.loop_var is outer and isinstance(around.body, tir.SeqStmt)
    asked = {
        at(tir.stmt_functor.substitute(index, {outer: tir.const(c, "int32")}), 1, row, 0) // 16
        for row in range(16)
        for c in range(4)
    }
    assert asked == set(range(64, 96))


@pytest.mark.parametrize(
    ("index", "why"),
    [
        (K * 64 + PANEL * 16, "a row of all panels lies together"),
        (PANEL * 640 + K * 32, "there are gaps in a panel"),
        (PANEL * 384 + ROW * 128 + K * 16, "every panel is read once"),
        (K * 16, "there is one panel"),
    ],
)
def test_nothing_to_gain(index, why):
    """Other orders are left as they are, without the mark."""
    made = prefetch_panels(product(index), 64)
    assert not hints(made), why
    assert not any(isinstance(part, tir.AttrStmt) for part in post_order(made))


def test_no_mark():
    """Loops that are not marked are the same objects."""
    stmt = product(PANEL * 128 + K * 16, mark="pragma_other")
    assert prefetch_panels(stmt, 64) is stmt


@pytest.mark.parametrize(("depth", "asks"), [(1200, True), (16, False), (2000, False)])
def test_schedules_of_large_weights_ask(depth, asks):
    """A dense layer whose weights do not stay in the L2 asks ahead; a small one does not, nor one two of
    whose panels do not fit there. Results are right, also where rows do not divide into tiles."""
    target = tvm.target.Target("llvm -mcpu=haswell")
    with target:
        data, weight = te.placeholder((21, depth)), te.placeholder((16, depth, 16))
        made = topi.x86.dense_pack(data, weight)
        schedule = topi.x86.schedule_dense_pack(made)
        lowered = tvm.lower(schedule, [data, weight, made])
        assert bool(hints(lowered["main"].body)) == asks
        built = tvm.build(schedule, [data, weight, made], target)
    random = np.random.default_rng(3)
    left = random.normal(size=(21, depth)).astype("float32")
    right = random.normal(size=(16, depth, 16)).astype("float32")
    found = tvm.nd.array(np.zeros((21, 256), "float32"))
    built(tvm.nd.array(left), tvm.nd.array(right), found)
    wanted = left.astype("float64") @ right.astype("float64").transpose(1, 0, 2).reshape(depth, 256)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-4)


def test_the_loop_around_asks_where_it_may():
    """With enough lines allowed, the loop over rows asks for its share of the next panel, the reduction for none."""
    whole = product(PANEL * 128 + K * 16, rows=4)
    allowed = tir.For(PANEL, 0, 4, 0, tir.For(ROW, 0, 4, 0, tir.AttrStmt(K, PRAGMA, 2, whole.body.body.body)))
    made = prefetch_panels(allowed, 64)
    found = hints(made)
    assert len(found) == 2 and not any(part is K for index in found for part in post_order(index))
    asked = {at(index, 1, row, 0) // 16 for index in found for row in range(4)}
    assert asked == set(range(16, 24))
