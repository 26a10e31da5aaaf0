"""What unit tests of TVM's schedules ask of them."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te


def test_singleton() -> None:
    """Fusing nothing gives an axis of one iteration."""
    a = te.placeholder((), name="A")
    t = te.compute((), lambda: a() + 1)
    s = te.create_schedule(t.op)
    fused = s[t].fuse()
    assert any(isinstance(x, te.schedule.Singleton) for x in s[t].relations)
    assert tuple(s[t].leaf_iter_vars) == (fused,)


def test_create() -> None:
    """Leaves follow from the steps; any operation of the graph can be named."""
    m, n, l = te.size_var("m"), te.size_var("n"), te.size_var("l")
    a = te.placeholder((m, l), name="A")
    b = te.placeholder((n, l), name="B")
    aa = te.compute((m, l), lambda i, j: a[i, j])
    t = te.compute((m, n, l), lambda i, j, k: aa(i, k) * b(j, k))
    s = te.create_schedule(t.op)
    s[aa].set_scope("shared")
    xo, xi = s[t].split(t.op.axis[0], factor=10)
    xi1, _ = s[t].split(xi, factor=2)
    s[aa].compute_at(s[t], xi1)
    xo, xi = s[aa].split(aa.op.axis[0], factor=10)
    assert t.op.axis[1] in s[t].leaf_iter_vars
    assert list(s[aa].leaf_iter_vars[:2]) == [xo, xi]


def test_reorder() -> None:
    """The named axes take one another's places; a repeated axis and a foreign one are refused."""
    m = te.size_var("m")
    a = te.placeholder((m,), name="A")
    t = te.compute(m, lambda i: a[i + 1])
    s = te.create_schedule(t.op)
    xo, xi = s[t].split(t.op.axis[0], factor=10)
    xi1, xi2 = s[t].split(xi, factor=2)
    order = (xi2, xi1, xo)
    assert tuple(s[t].leaf_iter_vars) != order
    s[t].reorder(*order)
    assert tuple(s[t].leaf_iter_vars) == order
    with pytest.raises(tvm.TVMError):
        s[t].reorder(xi2, xi1, xi2)


def test_split() -> None:
    """The leaves of a split."""
    m = te.size_var("m")
    a = te.placeholder((m,), name="A")
    t = te.compute((m,), lambda i: a[i])
    s = te.create_schedule(t.op)
    xo, xi = s[t].split(t.op.axis[0], factor=10)
    assert tuple(s[t].leaf_iter_vars) == (xo, xi)


def test_tile() -> None:
    """Outer parts first, then inner parts."""
    m, n = te.size_var("m"), te.size_var("n")
    a = te.placeholder((m, n), name="A")
    t = te.compute((m, n), lambda i, j: a[i, j])
    s = te.create_schedule(t.op)
    xo, yo, xi, yi = s[t].tile(t.op.axis[0], t.op.axis[1], x_factor=10, y_factor=5)
    assert tuple(s[t].leaf_iter_vars) == (xo, yo, xi, yi)


def test_fuse() -> None:
    """The fused axis stands among the relations and the leaves."""
    m, n = te.size_var("m"), te.size_var("n")
    a = te.placeholder((m, n), name="A")
    t = te.compute((m, n), lambda i, j: a[i, j])
    s = te.create_schedule(t.op)
    xo, yo, xi, yi = s[t].tile(t.op.axis[0], t.op.axis[1], x_factor=10, y_factor=5)
    fused = s[t].fuse(xo, yo)
    assert any(isinstance(x, te.schedule.Fuse) for x in s[t].relations)
    assert tuple(s[t].leaf_iter_vars) == (fused, xi, yi)


def test_fuse_with_split() -> None:
    """Fusing two axes that came from different splits."""
    m, n = te.size_var("m"), te.size_var("n")
    a = te.placeholder((m, n), name="A")
    t = te.compute((m, n), lambda i, j: a[i, j])
    s = te.create_schedule(t.op)
    y = t.op.axis[1]
    xo, xi = s[t].split(t.op.axis[0], factor=10)
    fused = s[t].fuse(xi, y)
    assert any(isinstance(x, te.schedule.Fuse) for x in s[t].relations)
    assert tuple(s[t].leaf_iter_vars) == (xo, fused)


def test_fuse_with_out_of_order_axis() -> None:
    """Axes that are not neighbours, or in the wrong order, cannot be fused."""
    m, n = te.size_var("m"), te.size_var("n")
    a = te.placeholder((m, n), name="A")
    t = te.compute((m, n), lambda i, j: a[i, j])
    s = te.create_schedule(t.op)
    y = t.op.axis[1]
    xo, xi = s[t].split(t.op.axis[0], factor=10)
    with pytest.raises(tvm.TVMError):
        s[t].fuse(xo, y)
    with pytest.raises(tvm.TVMError):
        s[t].fuse(y, xo)
    with pytest.raises(tvm.TVMError):
        s[t].fuse(xi, xo)


def test_vectorize_and_pragma() -> None:
    """What was asked for an axis can be read back."""
    m, n = te.size_var("m"), te.size_var("n")
    a = te.placeholder((m, n), name="A")
    t = te.compute((m, n), lambda i, j: a[i, j])
    s = te.create_schedule(t.op)
    _, _, xi, yi = s[t].tile(t.op.axis[0], t.op.axis[1], x_factor=10, y_factor=5)
    s[t].vectorize(yi)
    s[t].unroll(xi)
    unroll, vectorize = tvm.tir.IterVar.Unrolled, tvm.tir.IterVar.Vectorized
    assert s[t].iter_var_attrs[xi].iter_type == unroll
    assert s[t].iter_var_attrs[yi].iter_type == vectorize
    s = te.create_schedule(t.op)
    xo, _, _, _ = s[t].tile(t.op.axis[0], t.op.axis[1], x_factor=10, y_factor=5)
    s[t].pragma(xo, "pragma1", "value")
    s[t].pragma(xo, "pragma2", "value")
    attrs = s[t].iter_var_attrs[xo]
    assert [key.value for key in attrs.pragma_keys] == ["pragma1", "pragma2"]
    assert all(value.value == "value" for value in attrs.pragma_values)


def test_rfactor() -> None:
    """Shapes of the factored tensors, and that the reduction reads them."""
    n = te.size_var("n")
    k1 = te.reduce_axis((0, n), name="k1")
    k2 = te.reduce_axis((0, n), name="k2")
    a = te.placeholder((n, n, n), name="A")
    b = te.compute((n,), lambda i: te.sum(a[i, k1, k2], axis=[k1, k2]))
    s = te.create_schedule(b.op)
    bf = s.rfactor(b, k1)
    assert tuple(bf.shape) == (n, n)
    assert [axis.var.name for axis in bf.op.body[0].axis] == ["k2"]
    assert s[b].op.body[0].axis[0].dom.extent == n
    s = te.create_schedule(b.op)
    _, ki = s[b].split(b.op.reduce_axis[0], factor=4)
    xo, _ = s[b].split(b.op.axis[0], factor=8)
    bf = s.rfactor(b, ki)
    assert bf.shape[0].value == 4 and bf.shape[1] == n
    assert len(bf.op.body[0].axis) == 2
    assert s[b].op.body[0].axis[0].dom.extent.value == 4
    assert xo not in s[b].leaf_iter_vars


def test_rfactor_factor_axis() -> None:
    """``factor_axis`` says where the new dimension stands."""
    n = tvm.convert(16)
    k1 = te.reduce_axis((0, n), name="k1")
    k2 = te.reduce_axis((0, n), name="k2")
    a = te.placeholder((n, n, n), name="A")
    b = te.compute((n,), lambda i: te.sum(a[i, k1, k2], axis=[k1, k2]))
    s = te.create_schedule(b.op)
    bf = s.rfactor(b, k1, 0)
    assert [extent.value for extent in bf.shape] == [16, 16]
    s = te.create_schedule(b.op)
    ko, ki = s[b].split(b.op.reduce_axis[0], factor=4)
    bf = s.rfactor(b, ki, 1)
    assert bf.shape[0].value == 16 and bf.shape[1].value == 4
    assert ko.var.name.endswith("outer")


def test_tensor_intrin_is_kept() -> None:
    """The intrinsic of a tensorised axis can be read back."""
    n = 16
    x = te.placeholder((n,), name="x")
    y = te.placeholder((n,), name="y")
    z = te.compute(x.shape, lambda i: x[i] + y[i], name="z")

    def intrin_func(ins: list[tvm.tir.Buffer], outs: list[tvm.tir.Buffer]) -> tvm.tir.PrimExpr:
        assert isinstance(ins[0], tvm.tir.Buffer)
        assert ins[0].shape[0].value == n
        return tvm.tir.call_packed("vadd", ins[0].data, outs[0].data, ins[0].shape[0])

    intrin = te.decl_tensor_intrin(z.op, intrin_func)
    assert intrin.op == z.op
    assert intrin.reduce_init is None
    assert tuple(intrin.inputs) == tuple(z.op.input_tensors)
    assert intrin.buffers[0].shape[0].value == n
    m = 32
    big_x = te.placeholder((m,), name="X")
    big_y = te.placeholder((m,), name="Y")
    big_z = te.compute(big_x.shape, lambda i: big_x[i] + big_y[i], name="Z")
    s = te.create_schedule(big_z.op)
    _, xi = s[big_z].split(big_z.op.axis[0], factor=n)
    s[big_z].tensorize(xi, intrin)
    assert s[big_z].iter_var_attrs[xi].tensor_intrin == intrin
    assert s[big_z].iter_var_attrs[xi].iter_type == tvm.tir.IterVar.Tensorized


def test_tensor_intrin_with_scalar_parameters() -> None:
    """An intrinsic may take scalars; the call in te.compute gives them."""
    n = te.size_var("n")
    x = te.placeholder((n,), name="x")
    v, w = te.size_var("v"), te.size_var("w")
    z = te.compute((n,), lambda i: x[i] * v + w, name="z")

    def intrin_func(ins: list[tvm.tir.Buffer], outs: list[tvm.tir.Buffer], sp: list[tvm.tir.Var]) -> object:
        assert ins[0].shape[0] == n
        assert sp[0] == v and sp[1] == w
        return tvm.tir.call_packed("hw_func", ins[0].data, outs[0].data, sp[0], sp[1])

    intrin = te.decl_tensor_intrin(
        z.op, intrin_func, scalar_params=[v, w], default_buffer_params={"offset_factor": 1}
    )
    assert intrin.op == z.op
    assert intrin.reduce_init is None
    assert tuple(intrin.inputs) == tuple(z.op.input_tensors)
    assert intrin.buffers[0].shape[0] == n
    assert tuple(intrin.scalar_params) == (v, w)
    a = te.placeholder((10, 10), name="A")
    c = te.compute((10, 10), lambda i: intrin(a[i, 0:10], scalar_inputs=[i * i, i + 1]), name="C")
    s = te.create_schedule(c.op)
    text = str(tvm.lower(s, [a, c]))
    assert "hw_func" in text


def test_legalize_invalid_attach() -> None:
    """A place whose axis is split or fused afterwards moves along, whether that comes before or after."""
    a = te.compute((10, 10), lambda i, j: 1.0, name="A")
    b = te.compute((10, 10), lambda i, j: a[i][j], name="B")
    s = te.create_schedule([b.op])
    s[a].compute_at(s[b], b.op.axis[1])
    s[b].split(b.op.axis[1], 2)
    assert "for" in str(tvm.lower(s, [a, b], simple_mode=True))
    s = te.create_schedule([b.op])
    s[a].compute_at(s[b], b.op.axis[1])
    s[b].fuse(b.op.axis[0], b.op.axis[1])
    result = np.zeros((10, 10), "float32")
    tvm.build(s, [b], "llvm")(result)
    assert (result == 1).all()


def test_local_stage_predicate() -> None:
    """What a thread keeps for itself needs no guard beyond that of its own threads."""
    m, n, p = 1, 3, 2
    a = te.placeholder((m, n, p), name="A")
    b = te.compute((m, n, p), lambda bi, ni, pi: a[bi, ni, pi], name="B")
    c = te.compute((m, n, p), lambda bi, ni, pi: b[bi, ni, pi], name="C")
    by = te.thread_axis("blockIdx.y")
    tx = te.thread_axis("threadIdx.x")
    vx = te.thread_axis("vthread")

    def schedule(thread_tag: tvm.tir.IterVar, mem_scope: str) -> te.Schedule:
        s = te.create_schedule(c.op)
        s[b].compute_at(s[c], s[c].op.axis[0])
        s[b].set_scope(mem_scope)
        bno, _ = s[b].split(s[b].op.axis[1], n)
        bx = te.thread_axis("blockIdx.x")
        s[c].bind(s[c].op.axis[0], bx)
        s[b].bind(bno, thread_tag)
        cno, _ = s[c].split(s[c].op.axis[1], n)
        s[c].bind(cno, thread_tag)
        return s

    for tag, scope in ((tx, "local"), (vx, "local"), (by, "shared")):
        lowered = tvm.lower(schedule(tag, scope), [a, c])["main"]
        values, result = np.random.rand(m, n, p).astype("float32"), np.zeros((m, n, p), "float32")
        tvm.tir.interpreter.interpret(lowered, values, result)
        np.testing.assert_array_equal(result, values)


def test_cache_read_and_write_of_the_same_name() -> None:
    """The usual way to write caches: staged reads for two readers, a cache for the result."""
    m, n = te.size_var("m"), te.size_var("n")
    a = te.placeholder((m, n), name="A")
    b = te.compute((m, n), lambda *i: a(*i) + 1, name="B")
    c = te.compute((m, n), lambda *i: b(*i) + 1, name="C")
    d = te.compute((m, n), lambda *i: b(*i) * c(*i), name="D")
    s = te.create_schedule(d.op)
    aa = s.cache_read(a, "local", readers=[b])
    bb = s.cache_read(b, "local", [c, d])
    cc = s.cache_write(c, "local")
    assert aa.op.name == "A.local" and bb.op.name == "B.local" and cc.op.name == "C.local"
    values, result = np.random.rand(3, 4).astype("float32"), np.zeros((3, 4), "float32")
    tvm.tir.interpreter.interpret(tvm.lower(s, [a, d])["main"], values, result)
    np.testing.assert_allclose(result, (values + 1) * (values + 2), rtol=1e-6)


def test_schedule_middle_tensor_as_output() -> None:
    """An intermediate tensor may be among the outputs and among the arguments."""
    a = te.placeholder((5,), name="A")
    b = te.compute((5,), lambda i: a[i] + 1, name="B")
    c = te.compute((5,), lambda i: b[i] * 2, name="C")
    s = te.create_schedule([c.op, b.op])
    values, one, two = np.arange(5, dtype="float32"), np.zeros(5, "float32"), np.zeros(5, "float32")
    tvm.build(s, [a, b, c], "llvm")(values, one, two)
    assert one.tolist() == [1, 2, 3, 4, 5]
    assert two.tolist() == [2, 4, 6, 8, 10]


def test_bounds_of_a_schedule() -> None:
    """Bound inference by its old names: a producer covers what its reader needs."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    a1 = te.compute(a.shape, lambda i: a[i] + 1, name="A1")
    a2 = te.compute(a.shape, lambda i: a1[i] + 3, name="A2")
    s = te.create_schedule(a2.op)
    xo, _ = s[a2].split(s[a2].op.axis[0], 8)
    s[a1].compute_at(s[a2], xo)
    s = s.normalize()
    bounds = tvm.te.schedule.InferBound(s)
    assert isinstance(bounds, (dict, tvm.ir.container.Map))
    assert bounds[a1.op.axis[0]].extent.value == 8
    stmt = tvm.te.schedule.ScheduleOps(s, bounds)
    func = tvm.te.schedule.SchedulePostProcToPrimFunc([a, a2], stmt, None)
    assert isinstance(func, tvm.tir.PrimFunc)
