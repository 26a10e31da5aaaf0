"""Whose memory a tensor lives in."""

from __future__ import annotations

from tests.te.schedule.checks import parts

from tilewright import te, tir
from tilewright.te.schedule import infer_bound, schedule_ops, to_prim_func


def test_the_users_tensor_stands_for_what_the_schedule_made_of_it() -> None:
    """After cache_write and inlining, stores go to the tensors that the user holds."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((8,), lambda i: b[i] * 2.0, name="C")
    s = te.create_schedule(c.op)
    cache = s.cache_write(c, "local")
    s[b].compute_inline()
    normal = s.normalize()
    assert normal[c].op is not c.op
    stmt = schedule_ops(normal, infer_bound(normal))
    stored = {store.producer for store in parts(stmt, tir.ProducerStore)}
    assert stored == {c, cache}
    assert isinstance(to_prim_func([a, c], stmt), tir.PrimFunc)


def test_what_a_scan_uses_lives_in_its_output() -> None:
    """Initialisation, update and state have no memory of their own."""
    x = te.placeholder((5, 3), name="X")
    state = te.placeholder((5, 3), name="state")
    init = te.compute((1, 3), lambda t, i: x[0, i], name="init")
    update = te.compute((5, 3), lambda t, i: state[t - 1, i] + x[t, i], name="update")
    out = te.scan(init, update, state, inputs=[x], name="out")
    s = te.create_schedule(out.op).normalize()
    stmt = schedule_ops(s, infer_bound(s))
    assert {store.producer for store in parts(stmt, tir.ProducerStore)} == {out}
    assert [one.producer for one in parts(stmt, tir.ProducerRealize)] == [out]
