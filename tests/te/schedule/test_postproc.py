"""From the statement of a schedule to a function."""

from __future__ import annotations

import pytest
from tests.te.schedule.checks import parts

from tilewright import te, tir
from tilewright.support.errors import LoweringError
from tilewright.te.schedule import infer_bound, schedule_ops, to_prim_func


def program() -> tuple[list[te.Tensor], tir.Stmt]:
    """Two elementwise computations and their statement."""
    a = te.placeholder((8,), name="A")
    b = te.compute((8,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((8,), lambda i: b[i] * 2.0, name="C")
    s = te.create_schedule(c.op).normalize()
    return [a, b, c], schedule_ops(s, infer_bound(s))


def test_arguments_become_parameters() -> None:
    """Tensors get buffers, buffers and variables stay; what is not an argument is realised inside."""
    (a, _, c), stmt = program()
    x = te.var("x")
    function = to_prim_func([x, a, c], stmt)
    assert [one.name for one in function.params] == ["x", "A", "C"]
    assert [buffer.name for buffer in function.buffer_map.values()] == ["A", "C"]
    (inside,) = parts(function, tir.BufferRealize)
    assert inside.buffer.name == "B"
    assert not parts(function, tir.ProducerStore)


def test_an_intermediate_tensor_may_be_an_argument() -> None:
    """Then it has no memory inside."""
    tensors, stmt = program()
    assert not parts(to_prim_func(tensors, stmt), tir.BufferRealize)


def test_given_buffers() -> None:
    """``binds`` says which buffer a tensor lives in, whether it is an argument by tensor or by buffer."""
    (a, _, c), stmt = program()
    buffer = tir.decl_buffer((8,), "float32", "mine", scope="global")
    for argument in (a, buffer):
        function = to_prim_func([argument, c], stmt, {a: buffer})
        assert list(function.buffer_map.values())[0] is buffer
        assert {load.buffer for load in parts(function, tir.BufferLoad)} >= {buffer}


def test_a_thread_that_runs_is_not_launched_again() -> None:
    """A stage on the same thread axis inside its reader's kernel has one launch around both."""
    a = te.placeholder((16,), name="A")
    b = te.compute((16,), lambda i: a[i] + 1.0, name="B")
    c = te.compute((16,), lambda i: b[i] * 2.0, name="C")
    s = te.create_schedule(c.op)
    thread = te.thread_axis("threadIdx.x")
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[c].bind(inner, thread)
    s[b].compute_at(s[c], outer)
    s[b].set_scope("shared")
    s[b].bind(b.op.axis[0], thread)
    s[c].bind(outer, te.thread_axis("blockIdx.x"))
    normal = s.normalize()
    function = to_prim_func([a, c], schedule_ops(normal, infer_bound(normal)))
    launches = [one for one in parts(function, tir.AttrStmt) if one.attr_key == "thread_extent"]
    assert sorted(one.node.thread_tag for one in launches) == ["blockIdx.x", "threadIdx.x", "threadIdx.x"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda a, c: [c], "tensor A is used but is neither an argument nor computed"),
        (lambda a, c: [a, c, a], "A occurs twice"),
        (lambda a, c: [a, c, "x"], "not 'x'"),
    ],
)
def test_arguments_that_do_not_fit(make: object, message: str) -> None:
    """Missing inputs, repetitions, and other objects."""
    (a, _, c), stmt = program()
    with pytest.raises(LoweringError, match=message):
        to_prim_func(make(a, c), stmt)
