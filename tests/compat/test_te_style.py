"""What unit tests of tensor expressions ask: tensors, operations, schedules, modules, targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
import tilewright.testing
from tilewright import te, topi


def test_tensor() -> None:
    """Shape, dtype, name, equality of outputs, slices."""
    m, n, l = te.size_var("m"), te.size_var("n"), te.size_var("l")
    A = te.placeholder((m, l), name="A")
    B = te.placeholder((n, l), name="B")
    T = te.compute((m, n, l), lambda i, j, k: A[i, k] * B[j, k])
    assert tuple(T.shape) == (m, n, l)
    assert isinstance(A.op, tvm.te.PlaceholderOp)
    assert A == A and T.op.output(0) == T and T.op.output(0).__hash__() == T.__hash__()
    d = {T.op.output(0): 1}
    assert d[T] == 1
    assert T[0][0][0].astype("float16").dtype == "float16"
    assert str(A) and "A" in repr(A)
    assert T.ndim == 3 and T.value_index == 0
    C = te.compute((10,), lambda i: A[0][i] + 1)
    assert C.dtype == "float32"
    assert len(te.placeholder(()).shape) == 0


def test_rank_zero() -> None:
    """Scalars as tensors."""
    m = te.size_var("m")
    A, scale = te.placeholder((m,), name="A"), te.placeholder((), name="s")
    k = te.reduce_axis((0, m), name="k")
    T = te.compute((), lambda: te.sum(A[k] * scale(), axis=k))
    assert tuple(T.shape) == ()
    s = te.create_schedule(T.op)
    f = tvm.build(s, [A, scale, T], "llvm")
    out = tvm.nd.empty((), "float32")
    f(tvm.nd.array(np.arange(4, dtype="float32")), tvm.nd.array(np.array(2, "float32")), out)
    assert out.numpy() == 12


def test_conv1d_slice_and_reduce() -> None:
    """Reductions of several axes, of several values, with conditions."""
    m = te.size_var("m")
    A = te.placeholder((m + 2,), name="A")
    T = te.compute((m,), lambda i: A[i] + A[i + 1] + A[i + 2])
    assert list(T.op.input_tensors) == [A]
    n = te.size_var("n")
    X = te.placeholder((m, n), name="X")
    rv = te.reduce_axis((0, n), "k")
    R = te.compute((m,), lambda i: te.sum(X[i, rv], axis=rv, where=(rv > 0)))
    assert R.op.reduce_axis[0] == rv
    assert len(R.op.reduce_axis) == 1
    assert R.op.body[0].combiner.identity_element[0].value == 0
    with pytest.raises((tvm.TVMError, ValueError)):
        te.compute((m,), lambda i: te.sum(X[i, rv], axis=rv) + 1)


def test_comm_reducer_tuple() -> None:
    """argmax with a reducer of pairs."""

    def fcombine(x: Any, y: Any) -> Any:
        lhs = tvm.tir.Select((x[1] >= y[1]), x[0], y[0])
        rhs = tvm.tir.Select((x[1] >= y[1]), x[1], y[1])
        return lhs, rhs

    argmax = te.comm_reducer(
        fcombine, lambda t0, t1: (tvm.tir.const(-1, t0), te.min_value(t1)), name="argmax"
    )
    idx, val = te.placeholder((4, 8), "int32", "idx"), te.placeholder((4, 8), "float32", "val")
    k = te.reduce_axis((0, 8), "k")
    T0, T1 = te.compute((4,), lambda i: argmax((idx[i, k], val[i, k]), axis=k), name="T")
    s = te.create_schedule(T0.op)
    f = tvm.build(s, [idx, val, T0, T1], "llvm")
    values = np.random.rand(4, 8).astype("float32")
    indices = np.tile(np.arange(8, dtype="int32"), (4, 1))
    o0, o1 = tvm.nd.empty((4,), "int32"), tvm.nd.empty((4,))
    f(tvm.nd.array(indices), tvm.nd.array(values), o0, o1)
    assert o0.numpy().tolist() == values.argmax(1).tolist()
    np.testing.assert_allclose(o1.numpy(), values.max(1))


def test_scan_and_extern_shapes() -> None:
    """Scan's outputs; extern with several outputs."""
    m, n = te.size_var("m"), te.size_var("n")
    x = te.placeholder((m, n))
    s = te.placeholder((m, n))
    res = te.scan(
        te.compute((1, n), lambda _, i: x[0, i]), te.compute((m, n), lambda t, i: s[t - 1, i] + x[t, i]), s
    )
    assert tuple(res.shape) == (m, n)
    assert res.op.scan_axis.dom.min.value == 1
    A = te.placeholder((4,), name="A")

    def extern_func(ins: Any, outs: Any) -> Any:
        assert isinstance(ins[0], tvm.tir.Buffer)
        return tvm.tir.call_packed("compat.add_one", ins[0], outs[0])

    B = te.extern((4,), [A], extern_func, dtype="float32")

    @tvm.register_func("compat.add_one", override=True)
    def add_one(a: Any, b: Any) -> None:
        b[:] = a.numpy() + 1

    f = tvm.build(te.create_schedule(B.op), [A, B], "llvm")
    out = tvm.nd.empty((4,))
    f(tvm.nd.array(np.zeros(4, "float32")), out)
    assert out.numpy().tolist() == [1.0] * 4


def test_schedule_relations() -> None:
    """Splits, fuses, reorders, and what TVM refuses."""
    m = te.size_var("m")
    A = te.placeholder((m,), name="A")
    T = te.compute((m,), lambda i: A[i])
    s = te.create_schedule(T.op)
    xo, xi = s[T].split(T.op.axis[0], factor=10)
    assert tuple(s[T].leaf_iter_vars) == (xo, xi)
    xo2, xi2 = s[T].split(xo, nparts=5)
    assert s[T].relations[0].factor.value == 10 and isinstance(s[T].relations[0], te.schedule.Split)
    A = te.placeholder((4, 4), name="A")
    T = te.compute((4, 4), lambda i, j: A[i, j])
    s = te.create_schedule(T.op)
    xo, yo, xi, yi = s[T].tile(T.op.axis[0], T.op.axis[1], x_factor=10, y_factor=5)
    assert tuple(s[T].leaf_iter_vars) == (xo, yo, xi, yi)
    s = te.create_schedule(T.op)
    fused = s[T].fuse(T.op.axis[0], T.op.axis[1])
    assert any(isinstance(x, tvm.te.schedule.Fuse) for x in s[T].relations)
    assert tuple(s[T].leaf_iter_vars) == (fused,)
    s = te.create_schedule(T.op)
    with pytest.raises((tvm.TVMError, ValueError)):
        s[T].reorder(T.op.axis[0], T.op.axis[0])
    s[T].vectorize(T.op.axis[1])
    s[T].unroll(T.op.axis[0])
    assert s[T].iter_var_attrs[T.op.axis[1]].iter_type == tvm.tir.IterVar.Vectorized
    assert s[T].iter_var_attrs[T.op.axis[0]].iter_type == tvm.tir.IterVar.Unrolled
    s[T].pragma(T.op.axis[0], "xx", tvm.tir.StringImm("yy"))


def test_cache_and_rfactor() -> None:
    """cache_read, cache_write and rfactor rename readers as TVM does."""
    n = 64
    A = te.placeholder((n, n), name="A")
    k = te.reduce_axis((0, n), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    AA = s.cache_read(A, "global", [B])
    BL = s.cache_write(B, "local")
    assert AA.op.name.startswith("A") and BL.op.name.startswith("B")
    ko, ki = s[BL].split(BL.op.reduce_axis[0], 8)
    BF = s.rfactor(BL, ki)
    assert tuple(int(d) for d in BF.shape) == (8, n)
    f = tvm.build(s, [A, B], "llvm")
    data = np.random.rand(n, n).astype("float32")
    out = tvm.nd.empty((n,))
    f(tvm.nd.array(data), out)
    np.testing.assert_allclose(out.numpy(), data.sum(1), rtol=1e-5)


def test_hybrid_script() -> None:
    """The outer product, loops, conditions and intermediate arrays in hybrid script."""

    @te.hybrid.script
    def outer_product(n: Any, m: Any, a: Any, b: Any) -> Any:
        c = output_tensor((n, m), a.dtype)  # noqa: F821
        for i in range(n):
            for j in range(m):
                assert i < n and j < m, "index out of range!"
                c[i, j] = a[i] * b[j]
        return c

    n, m = te.size_var("n"), te.size_var("m")
    a, b = te.placeholder((n,), name="a"), te.placeholder((m,), name="b")
    c = outer_product(n, m, a, b)
    assert isinstance(c.op, te.HybridOp) and len(c.op.axis) == 2
    f = tvm.build(te.create_schedule(c.op), [a, b, c], "llvm")
    x, y = np.random.rand(3).astype("float32"), np.random.rand(4).astype("float32")
    out = tvm.nd.empty((3, 4))
    f(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), np.outer(x, y))
    np.testing.assert_allclose(outer_product(3, 4, x, y), np.outer(x, y))

    @tvm.te.hybrid.script
    def fanout(n: Any, a: Any) -> Any:
        b = output_tensor((a.shape[0] - 3,), "float32")  # noqa: F821
        three = 3.0
        for i in range(a.shape[0] - 3):
            sigma = 0.0
            for j in range(3):
                sigma += a[i + j]
            sigma = sigma / three
            b[i] = sigma
        return b

    a = te.placeholder((10,), name="a")
    d = fanout(tvm.tir.const(10, "int32"), a)
    f = tvm.build(te.create_schedule(d.op), [a, d], "llvm")
    x = np.random.rand(10).astype("float32")
    out = tvm.nd.empty((7,))
    f(tvm.nd.array(x), out)
    np.testing.assert_allclose(out.numpy(), np.array([x[i : i + 3].mean() for i in range(7)]), rtol=1e-5)


def test_topi_introduction() -> None:
    """The steps of the TOPI tutorial."""
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    B = topi.sum(A, axis=1)
    ts = te.create_schedule(B.op)
    assert "for" in str(tvm.lower(ts, [A], simple_mode=True))
    x, y = 10, 4
    a, b = te.placeholder((x, y, y), name="a"), te.placeholder((y, y), name="b")
    c = a + b
    d = a * b
    e = topi.elemwise_sum([c, d])
    f = e / 2.0
    with tvm.target.Target("llvm"):
        sg = topi.generic.schedule_injective(f)
    func = tvm.build(sg, [a, b, f], "llvm")
    p, q = np.random.rand(x, y, y).astype("float32"), np.random.rand(y, y).astype("float32")
    out = tvm.nd.empty((x, y, y))
    func(tvm.nd.array(p), tvm.nd.array(q), out)
    np.testing.assert_allclose(out.numpy(), (p + q + p * q) / 2, rtol=1e-5)
    tarray = te.placeholder((512, 512), name="tarray")
    softmax = topi.nn.softmax(tarray)
    with tvm.target.Target("llvm"):
        ss = topi.generic.schedule_softmax(softmax)
    assert "exp" in str(tvm.lower(ss, [tarray], simple_mode=True))
    data, kernel = te.placeholder((1, 3, 16, 16)), te.placeholder((4, 3, 3, 3))
    with tvm.target.Target("llvm"):
        conv = topi.nn.conv2d(data, kernel, strides=1, padding=1, dilation=1)
        out = topi.nn.relu(conv)
        sconv = topi.generic.schedule_conv2d_nchw([out])
    assert tvm.lower(sconv, [data, kernel, out], simple_mode=True) is not None


def test_lower_pass_hook() -> None:
    """The custom-pass tutorial: a pass of one's own, put between the phases of lowering."""
    a, b = te.placeholder((128,), name="a"), te.placeholder((128,), name="b")
    c = te.compute((128,), lambda i: a[i] + b[i], name="c")
    schedule = te.create_schedule(c.op)
    loops: list[Any] = []

    def find_width8(op: Any) -> None:
        if isinstance(op, tvm.tir.For) and isinstance(op.extent, tvm.tir.IntImm) and op.extent.value % 8 == 0:
            loops.append(op)

    def vectorize8(op: Any) -> Any:
        if op in loops:
            extent = op.extent.value
            name = op.loop_var.name
            lo, li = te.var(name + ".outer"), te.var(name + ".inner")
            body = tvm.tir.stmt_functor.substitute(op.body, {op.loop_var: lo * 8 + li})
            body = tvm.tir.For(li, 0, 8, tvm.tir.ForKind.VECTORIZED, body)
            return tvm.tir.For(lo, 0, extent // 8, tvm.tir.ForKind.SERIAL, body)
        return None

    @tvm.tir.transform.prim_func_pass(opt_level=0)
    def vectorize(f: Any, mod: Any, ctx: Any) -> Any:
        tvm.tir.stmt_functor.post_order_visit(f.body, find_width8)
        if not loops:
            return f
        return f.with_body(tvm.tir.stmt_functor.ir_transform(f.body, None, vectorize8, ["tir.For"]))

    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, vectorize)]}):
        mod = tvm.lower(schedule, [a, b, c])
    assert "ramp" in str(mod) and len(loops) == 1


def test_runtime() -> None:
    """Packed functions, conversions, arrays, modules."""

    @tvm.register_func("compat.concat", override=True)
    def concat(x: Any, y: Any) -> Any:
        return x + y

    f = tvm.get_global_func("compat.concat")
    assert isinstance(f, tvm.runtime.PackedFunc)
    assert f("a", "b") == "ab" and f(1, 2) == 3 and f(1.5, 2.0) == 3.5
    assert tvm.get_global_func("compat.nothing", allow_missing=True) is None
    with pytest.raises(ValueError):
        tvm.get_global_func("compat.nothing")
    g = tvm.convert(lambda *args: len(args))
    assert g(1, 2, 3) == 3
    h = tvm.runtime.convert(lambda x: x)
    assert h(tvm.cpu(0)) == tvm.cpu(0) and h("llvm") == "llvm" and h(None) is None
    a = tvm.nd.array(np.arange(6).reshape(2, 3).astype("float32"))
    assert a.shape == (2, 3) and a.dtype == "float32" and a.device == tvm.cpu(0)
    assert a.asnumpy().sum() == 15
    b = tvm.nd.empty((2, 3))
    a.copyto(b)
    assert (b.numpy() == a.numpy()).all()
    b[:] = 3
    assert b.numpy().sum() == 18
    with pytest.raises(ValueError):
        b[:] = np.zeros((4,), "float32")
    assert tvm.nd.array([1, 2, 3]).dtype in ("int64", "int32", "float32")
    assert tvm.nd.array(a, tvm.cpu(0)).shape == (2, 3)
    arr = tvm.runtime.convert([1, 2, 3])
    assert len(arr) == 3 and int(arr[1]) == 2 and [int(v) for v in arr[1:]] == [2, 3]
    m = tvm.runtime.convert({"a": 1})
    assert "a" in m and int(m["a"]) == 1
    x = te.var("x")
    mm = tvm.runtime.convert({x: 2})
    assert x in mm and int(mm[x]) == 2
    assert tvm.device("cpu", 0) == tvm.cpu(0) and tvm.cpu(0).exist and str(tvm.cpu(0)) == "cpu(0)"
    assert tvm.device("llvm", 0).device_type == 1 and tvm.cuda(1).device_id == 1
    with pytest.raises(ValueError):
        tvm.device("bogus")


def test_module_save_and_load(tmp_path: Any) -> None:
    """Export, load, time evaluator, imports, entry functions."""
    n = 16
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1.0)
    f = tvm.build(te.create_schedule(B.op), [A, B], "llvm", name="addone")
    path = str(tmp_path / "lib.so")
    f.export_library(path)
    loaded = tvm.runtime.load_module(path)
    a, b = tvm.nd.array(np.zeros(n, "float32")), tvm.nd.empty((n,))
    loaded["addone"](a, b)
    assert b.numpy().tolist() == [1.0] * n
    assert loaded.type_key == "library" and f.type_key == "llvm"
    assert f.entry_name and f.get_function("addone") is not None
    with pytest.raises(AttributeError):
        loaded["nothing"]
    timer = loaded.time_evaluator("addone", tvm.cpu(0), number=2, repeat=3)
    result = timer(a, b)
    assert len(result.results) == 3 and result.mean > 0
    f.save(str(tmp_path / "lib.o"))
    assert (tmp_path / "lib.o").stat().st_size > 0
    assert "define" in f.get_source("ll") and len(f.get_source("asm")) > 10
    from tilewright.contrib import cc, utils

    cc.create_shared(str(tmp_path / "again.so"), [str(tmp_path / "lib.o")])
    tvm.runtime.load_module(str(tmp_path / "again.so"))["addone"](a, b)
    assert utils.tempdir().relpath("x").endswith("x")
    assert tvm.runtime.enabled("llvm")


def test_targets() -> None:
    """Target strings, objects, dictionaries, scopes and generic functions."""
    t = tvm.target.Target("llvm -mcpu=skylake")
    assert t.kind.name == "llvm" and t.mcpu == "skylake" and "cpu" in t.keys
    assert tvm.target.cuda(options="-max_num_threads=256").max_num_threads == 256
    with tvm.target.Target("cuda"):
        assert tvm.target.Target.current().kind.name == "cuda"
    assert tvm.target.Target.current(allow_none=True) is None
    with pytest.raises(ValueError):
        tvm.target.Target.current(allow_none=False)

    @tvm.target.generic_func
    def mygeneric(data: Any) -> Any:
        return data + 1

    @mygeneric.register(["cuda", "gpu"])
    def cuda_func(data: Any) -> Any:
        return data + 2

    @mygeneric.register("rocm")
    def rocm_func(data: Any) -> Any:
        return data + 3

    @mygeneric.register("cpu")
    def cpu_func(data: Any) -> Any:
        return data + 10

    assert mygeneric(1) == 2
    with tvm.target.cuda():
        assert mygeneric(1) == 3
    with tvm.target.rocm():
        assert mygeneric(1) == 4
    with tvm.target.Target("llvm"):
        assert mygeneric(1) == 11
    full = tvm.target.Target({"kind": "llvm", "keys": ["arm_cpu", "cpu"], "mattr": ["+neon"]})
    assert list(full.keys) == ["arm_cpu", "cpu"] and list(full.attrs["mattr"]) == ["+neon"]
    host = tvm.target.Target("cuda", host="llvm")
    assert host.host.kind.name == "llvm"
    assert tvm.target.Target(str(t)).mcpu == "skylake"
    assert "llvm" in tvm.target.Target.list_kinds()
    assert (
        tvm.target.Target("nvidia/geforce-rtx-2080-ti").kind.name == "cuda"
        if "nvidia/geforce-rtx-2080-ti" in tvm.target.list_tags()
        else True
    )


def test_tensorize_intrinsic() -> None:
    """A matrix-vector intrinsic through decl_tensor_intrin, with update."""
    n, m, l = 8, 4, 16
    A, B = te.placeholder((n, l), name="A"), te.placeholder((m, l), name="B")
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[j, k], axis=k), name="C")
    s = te.create_schedule(C.op)

    def gemv(rows: int, inner: int) -> Any:
        a, b = te.placeholder((inner,), name="a"), te.placeholder((rows, inner), name="b")
        kk = te.reduce_axis((0, inner), name="k")
        c = te.compute((rows,), lambda i: te.sum(a[kk] * b[i, kk], axis=kk), name="c")
        Ab = tvm.tir.decl_buffer(a.shape, a.dtype, name="A", offset_factor=1, strides=[1])
        Bb = tvm.tir.decl_buffer(b.shape, b.dtype, name="B", offset_factor=1, strides=[te.var("s1"), 1])
        Cb = tvm.tir.decl_buffer(c.shape, c.dtype, name="C", offset_factor=1, strides=[1])

        def intrin_func(ins: Any, outs: Any) -> Any:
            ib = tvm.tir.ir_builder.create()
            aa, bb = ins
            ib.emit(tvm.tir.call_packed("compat.gemv", aa, bb, outs[0]))
            return ib.get()

        return te.decl_tensor_intrin(c.op, intrin_func, binds={a: Ab, b: Bb, c: Cb})

    @tvm.register_func("compat.gemv", override=True)
    def packed(a: Any, b: Any, c: Any) -> None:
        tvm.nd.array(b.numpy() @ a.numpy()).copyto(c)

    s[C].tensorize(C.op.axis[1], gemv(m, l))
    f = tvm.build(s, [A, B, C], "llvm")
    x, y = np.random.rand(n, l).astype("float32"), np.random.rand(m, l).astype("float32")
    out = tvm.nd.empty((n, m))
    f(tvm.nd.array(x), tvm.nd.array(y), out)
    np.testing.assert_allclose(out.numpy(), x @ y.T, rtol=1e-5)
