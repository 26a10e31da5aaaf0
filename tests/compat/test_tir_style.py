"""What unit tests of TVM's loop level ask: builders, lowering options, functions by hand."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tvm
from tilewright import te


def test_builder_program() -> None:
    """A function written with the builder is built and run."""
    n = te.size_var("n")
    a = tvm.tir.decl_buffer((n,), "float32", name="A")
    b = tvm.tir.decl_buffer((n,), "float32", name="B")
    ib = tvm.tir.ir_builder.create()
    source, target = ib.buffer_ptr(a), ib.buffer_ptr(b)
    with ib.for_range(0, n, name="i") as i:
        with ib.if_scope(ib.likely(i % 2 == 0)):
            target[i] = source[i] + 1.0
        with ib.else_scope():
            target[i] = source[i] - 1.0
    func = tvm.tir.PrimFunc([a, b], ib.get()).with_attr("global_symbol", "myfunc")
    mod = tvm.IRModule.from_expr(func)
    built = tvm.build(mod, target="llvm")
    x = tvm.nd.array(np.arange(7, dtype="float32"))
    y = tvm.nd.array(np.zeros(7, dtype="float32"))
    built["myfunc"](x, y)
    assert y.numpy().tolist() == [1, 0, 3, 2, 5, 4, 7]


def test_thread_program_from_the_builder() -> None:
    """Thread scopes by hand: shared memory, a barrier, CUDA source."""
    n = 64
    a = tvm.tir.decl_buffer((n,), "float32", name="A")
    ib = tvm.tir.ir_builder.create()
    tx = te.thread_axis("threadIdx.x")
    ib.scope_attr(tx, "thread_extent", n)
    memory = ib.allocate("float32", (n,), name="shared_memory", scope="shared")
    data = ib.buffer_ptr(a)
    memory[tx] = data[tx] * 2.0
    data[tx] = memory[n - 1 - tx.var]
    func = tvm.tir.PrimFunc([a], ib.get()).with_attr({"global_symbol": "reverse", "tir.noalias": True})
    source = tvm.build(tvm.IRModule({"reverse": func}), target="cuda").imported_modules[0].get_source()
    assert "__shared__" in source and "__syncthreads" in source


def test_unroll_by_pass_and_by_pragma() -> None:
    """The options of UnrollLoop by context, as tests of that pass use them."""
    ib = tvm.tir.ir_builder.create()
    n = te.size_var("n")
    pointer = ib.pointer("int64", name="A")
    with ib.for_range(n, n + 2, name="i") as i, ib.for_range(0, 8, name="i", kind="unroll") as j:
        pointer[j + 1] = pointer[i] + 1
    mod = tvm.IRModule.from_expr(tvm.tir.PrimFunc([n], ib.get()))
    assert isinstance(mod["main"].body, tvm.tir.For)
    with tvm.transform.PassContext(config={"tir.UnrollLoop": {"auto_max_step": 16}}):
        unrolled = tvm.tir.transform.UnrollLoop()(mod)["main"].body
    assert not isinstance(unrolled, tvm.tir.For)


def test_vectorize_and_simplify_by_hand() -> None:
    """Passes run one at a time on a module."""
    n = te.var("n")
    ib = tvm.tir.ir_builder.create()
    pointer = ib.pointer("float32", name="A")
    with ib.for_range(0, n), ib.for_range(0, 4, kind="vectorize") as j:
        pointer[j] = tvm.tir.const(1, "float32")
    mod = tvm.IRModule.from_expr(tvm.tir.PrimFunc([n], ib.get()))
    stmt = tvm.tir.transform.VectorizeLoop()(mod)["main"].body
    assert isinstance(stmt, tvm.tir.For)
    assert not isinstance(stmt.body, tvm.tir.For)
    assert isinstance(stmt.body.index, tvm.tir.Ramp)
    assert isinstance(stmt.body.value, tvm.tir.Broadcast)


def test_expressions() -> None:
    """Construction, promotion, constants, division."""
    x, y = te.var("x"), te.var("y")
    z = x + 2 * y
    assert isinstance(z, tvm.tir.Add) and z.dtype == "int32"
    assert (x + tvm.tir.const(1, "float32")).dtype == "float32"
    assert tvm.tir.const(3, "uint8").dtype == "uint8"
    assert isinstance(tvm.tir.floordiv(x, 3), tvm.tir.FloorDiv)
    assert isinstance(x // 3, tvm.tir.FloorDiv) and isinstance(x % 3, tvm.tir.FloorMod)
    assert tvm.tir.all(x > 1, y > 2, x < 5).dtype == "bool"
    assert te.max_value("int8").value == 127
    with pytest.raises(ValueError, match="if_then_else"):
        bool(x > y)
    analyzer = tvm.arith.Analyzer()
    assert analyzer.simplify(x + 1 - x).value == 1
    tvm.ir.assert_structural_equal(analyzer.simplify((x * 4 + 2) // 4), x)


def test_sequential_passes_with_config() -> None:
    """Passes in a Sequential, in a context that switches one off."""
    n = te.var("n")
    a = te.placeholder((n,), name="A")
    b = te.compute((n,), lambda i: te.if_then_else(i < 4, a[i], 0.0), name="B")
    mod = tvm.driver.build_module.schedule_to_module(te.create_schedule(b.op), [a, b])
    seq = tvm.transform.Sequential([tvm.tir.transform.StorageFlatten(64), tvm.tir.transform.Simplify()])
    flat = seq(mod)
    assert "T.store" in str(flat)
    with tvm.transform.PassContext(disabled_pass=["tir.StorageFlatten"]):
        assert "T.store" not in str(seq(mod))


def test_custom_lower_pass() -> None:
    """``add_lower_pass`` rewrites statements while lowering: every constant becomes another one."""

    @tvm.tir.transform.prim_func_pass(opt_level=0)
    def change(func: tvm.tir.PrimFunc, mod: tvm.IRModule, ctx: tvm.transform.PassContext) -> tvm.tir.PrimFunc:
        def postorder(node: object) -> object:
            if isinstance(node, tvm.tir.FloatImm) and node.value == 1.0:
                return tvm.tir.const(10.0, "float32")
            return None

        body = tvm.tir.stmt_functor.ir_transform(func.body, None, postorder, ["tir.FloatImm"])
        return func.with_body(body)

    a = te.placeholder((4,), name="A")
    b = te.compute((4,), lambda i: a[i] + 1.0, name="B")
    with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, change)]}):
        f = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    x, y = np.zeros(4, "float32"), np.zeros(4, "float32")
    f(x, y)
    assert y.tolist() == [10.0] * 4


def test_groups_as_tvm_counts_them() -> None:
    """Groups made one around another, and a scan's own group."""
    m, n = te.size_var("m"), te.size_var("n")
    x = te.placeholder((m, n), name="x")
    x1 = te.compute(x.shape, lambda *i: x(*i) + 1, name="x1")
    x2 = te.compute(x.shape, lambda *i: x1(*i) + 2, name="x2")
    s = te.create_schedule(x2.op)
    g1 = s.create_group(outputs=x1, inputs=x)
    g2 = s.create_group(outputs=x1, inputs=x, include_inputs=True)
    assert set(s.groups) == {g1, g2}
    assert s[x].group == g2 and s[x1].group == g1 and g1.group == g2
    assert (g2.num_child_stages, g1.num_child_stages) == (2, 1)
    s_state = te.placeholder((m, n))
    s_init = te.compute((1, n), lambda _, i: x[0, i])
    s_update1 = te.compute((m, n), lambda t, i: s_state[t - 1, i] + x[t, i])
    s_update2 = te.compute((m, n), lambda t, i: s_update1[t, i] + 1)
    s_update3 = te.compute((m, n), lambda t, i: s_update2[t, i] + 1)
    res = tvm.te.scan(s_init, s_update3, s_state, inputs=x)
    s = te.create_schedule(res.op)
    assert s[s_update1].group is not None and s[s_update2].group == s[s_update1].group
    s[s_update1].compute_at(s[s_update2], s_update2.op.axis[1])
    g2 = s.create_group(outputs=s_update2, inputs=[s_state, x])
    assert g2.group is not None and g2.group == s[s_update3].group
    assert s[s_update2].group == g2 and s[s_update1].group == g2
    g2.compute_at(s[s_update3], s_update3.op.axis[1])
    assert g2.attach_stage == s[s_update3]
    with pytest.raises(tvm.error.TVMError):
        s[s_update2].compute_at(s[s_init], s_init.op.axis[0])
    values, result = np.random.rand(4, 3).astype("float32"), np.zeros((4, 3), "float32")
    tvm.build(s, [x, res], "llvm")(values, result)
    expected = values.copy()
    for t in range(1, 4):
        expected[t] = expected[t - 1] + values[t] + 2
    np.testing.assert_allclose(result, expected, rtol=1e-5)
