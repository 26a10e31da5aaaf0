"""What unit tests of the loop level ask: nodes, buffers, statements, arithmetic, layouts."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright as tvm
import tilewright.testing
from tilewright import te


def test_tir_nodes() -> None:
    """Constants, casts, nodes by class, operators' errors."""
    x = tvm.tir.const(1, "int32")
    assert x.dtype == "int32" and isinstance(x, tvm.tir.IntImm)
    assert tvm.tir.const(1.5, "float32").value == 1.5
    assert tvm.tir.const(True).dtype == "bool"
    assert tvm.tir.const(1).dtype == "int32" and tvm.tir.const(1.0).dtype == "float32"
    s = tvm.tir.StringImm("aaa")
    assert s == "aaa" and s != "bbb"
    a, b = te.var("a"), te.var("b")
    e = a + b
    assert isinstance(e, tvm.tir.Add) and e.a == a and e.b == b
    assert str(tvm.tir.Div(a, b)) and isinstance(tvm.tir.FloorDiv(a, b), tvm.tir.FloorDiv)
    assert isinstance(a // b, tvm.tir.FloorDiv) and isinstance(a % b, tvm.tir.FloorMod)
    with pytest.raises(tvm.TVMError):
        a / b
    assert isinstance(tvm.tir.truncdiv(a, b), tvm.tir.Div) and isinstance(tvm.tir.truncmod(a, b), tvm.tir.Mod)
    assert isinstance(tvm.tir.indexdiv(a, b), tvm.tir.FloorDiv)
    cond = tvm.tir.all(a > b, a > 0)
    assert isinstance(cond, tvm.tir.And) and isinstance(tvm.tir.any(a > b, a > 0), tvm.tir.Or)
    with pytest.raises(ValueError):
        bool(a > 3)
    assert not bool(a == b) and bool(a == a)
    with pytest.raises(ValueError):
        tvm.tir.all()
    assert isinstance(tvm.tir.if_then_else(a > 1, a, b), tvm.tir.Call)
    assert tvm.tir.if_then_else(a > 1, a, b).op.name == "tir.if_then_else"
    assert tvm.tir.exp(te.var("x", "float32")).op.name == "tir.exp"
    assert isinstance(a.astype("float32"), tvm.tir.Cast) and a.astype("int32") is a
    assert isinstance(tvm.tir.Select(a > 1, a, b), tvm.tir.Select)
    let = tvm.tir.Let(a, 1, a + 1)
    assert let.value.value == 1
    ramp = tvm.tir.Ramp(a, 1, 4)
    assert ramp.dtype == "int32x4" and ramp.lanes == 4
    assert tvm.tir.Broadcast(a, 4).dtype == "int32x4"
    assert (
        tvm.tir.Shuffle([tvm.tir.const(1), tvm.tir.const(2)], [tvm.tir.const(0), tvm.tir.const(1)]).dtype
        == "int32x2"
    )
    assert (
        (a & b).op.name == "tir.bitwise_and"
        and (a << 1).op.name == "tir.shift_left"
        and (~a).op.name == "tir.bitwise_not"
    )
    assert (a | 1).op.name == "tir.bitwise_or" and (a ^ b).op.name == "tir.bitwise_xor"
    assert a.same_as(a) and not a.same_as(b)
    assert isinstance(-a, tvm.tir.PrimExpr) and isinstance(1 - a, tvm.tir.Sub)
    y = te.var("y", "float32")
    with pytest.raises(tvm.TVMError):
        y & 1
    assert isinstance(tvm.tir.max(a, b), tvm.tir.Max) and isinstance(te.min(a, b), tvm.tir.Min)
    assert te.min_value("int8").value == -128 and te.max_value("float32").value > 3e38


def test_tir_buffers() -> None:
    """Buffers, loads, access pointers, vector access."""
    m, n = te.size_var("m"), te.size_var("n")
    Ab = tvm.tir.decl_buffer((m, n), "float32")
    assert Ab.dtype == "float32" and tuple(Ab.shape) == (m, n) and isinstance(Ab, tvm.tir.Buffer)
    ptr = Ab.access_ptr("rw")
    assert isinstance(ptr, tvm.tir.Call) and ptr.dtype == "handle"
    assert ptr.args[4].value == tvm.tir.Buffer.READ | tvm.tir.Buffer.WRITE
    aptr = Ab.access_ptr("w")
    assert aptr.args[4].value == tvm.tir.Buffer.WRITE
    buf = tvm.tir.decl_buffer((16,), "float32")
    load = buf.vload([0], dtype="float32x4")
    assert load.dtype == "float32x4"
    store = buf.vstore([0], tvm.tir.Broadcast(tvm.tir.const(1.0, "float32"), 4))
    assert isinstance(store, tvm.tir.Stmt)
    strided = tvm.tir.decl_buffer(
        (4, 4), "float32", strides=[te.var("s1"), te.var("s2")], elem_offset=te.var("o"), scope="local"
    )
    assert strided.scope() == "local"
    offset = Ab.access_ptr("r", offset=te.size_var("v"))
    assert offset.args[2].name == "v"


def test_statements() -> None:
    """Statement nodes and visitors of them."""
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: A[i] + 1)
    mod = tvm.lower(te.create_schedule(B.op), [A, B])
    body = mod["main"].body
    found: list[Any] = []
    tvm.tir.stmt_functor.post_order_visit(body, lambda node: found.append(type(node).__name__))
    assert "For" in found and ("Store" in found or "BufferStore" in found)
    x = te.var("x")
    assign = tvm.tir.LetStmt(x, 1, tvm.tir.Evaluate(x + 1))
    assert assign.body.value.a == x
    seq = tvm.tir.stmt_seq(
        *(tvm.tir.Evaluate(tvm.tir.call_extern("int32", name, n)) for n, name in enumerate("fgh"))
    )
    assert isinstance(seq, tvm.tir.SeqStmt) and len(seq) == 3 and seq[1].value.args[1].value == 1
    assert [s.value.args[0].value for s in tvm.tir.stmt_list(seq)] == ["f", "g", "h"]
    replaced = tvm.tir.stmt_functor.substitute(assign.body, {x: tvm.tir.const(5)})
    assert isinstance(replaced, tvm.tir.Evaluate)
    loop = tvm.tir.For(x, 0, 10, tvm.tir.ForKind.SERIAL, tvm.tir.Evaluate(x))
    assert loop.extent.value == 10 and loop.kind == tvm.tir.ForKind.SERIAL
    changed = tvm.tir.stmt_functor.ir_transform(
        loop,
        None,
        lambda op: tvm.tir.Evaluate(op.value + 1) if isinstance(op, tvm.tir.Evaluate) else None,
        ["tir.Evaluate"],
    )
    assert isinstance(changed.body.value, tvm.tir.Add)
    attr = tvm.tir.AttrStmt(x, "xx", 1, tvm.tir.Evaluate(1))
    assert attr.value.value == 1
    ite = tvm.tir.IfThenElse(x > 1, tvm.tir.Evaluate(1), None)
    assert ite.else_case is None
    alloc = tvm.tir.Allocate(
        tvm.tir.Var("buf", tvm.ir.PointerType(tvm.ir.PrimType("float32"))),
        "float32",
        [10],
        tvm.tir.const(True),
        tvm.tir.Evaluate(1),
    )
    assert alloc.dtype == "float32"


def test_analyzer() -> None:
    """Bounds, modular sets, simplification, proofs, scopes."""
    ana = tvm.arith.Analyzer()
    x, y, z = te.var("x"), te.var("y"), te.var("z")
    assert ana.const_int_bound(te.var("w", "int64")).max_value == tvm.arith.ConstIntBound.POS_INF
    assert ana.const_int_bound(te.var("b", "uint8")).max_value == 255
    ana.update(x, tvm.arith.ConstIntBound(1, 4))
    ana.update(y, tvm.arith.ConstIntBound(0, 3))
    bound = ana.const_int_bound(x + y)
    assert bound.min_value == 1 and bound.max_value == 7
    m = ana.modular_set(x * 6 + 4)
    assert (m.coeff, m.base) == (6, 4)
    tvm.ir.assert_structural_equal(ana.simplify(x * 3 + 10 - x), ana.simplify(x * 2 + 10))
    assert ana.rewrite_simplify(x - x).value == 0
    tvm.ir.assert_structural_equal(
        ana.canonical_simplify(tvm.tir.floordiv(z * 6 + 5, 3)), ana.canonical_simplify(z * 2 + 1)
    )
    ana.bind(z, tvm.ir.Range.from_min_extent(0, 8))
    assert ana.can_prove(z < 8)
    assert ana.simplify(tvm.tir.floormod(z, 8)).same_as(z)
    with ana.constraint_scope(te.var("flag") > 0):
        assert ana.const_int_bound(x).min_value == 1
    s = tvm.arith.IntervalSet(0, 3)
    dom = ana.int_set(x + 1, {x: s})
    assert ana.simplify(dom.min_value).value == 1 and ana.simplify(dom.max_value).value == 4
    a, b = tvm.arith.detect_linear_equation(x * 4 + y, [x])
    assert a.value == 4 and b.same_as(y)
    cond = tvm.arith.deduce_bound(x, x * 4 + y < 100, {y: tvm.arith.IntervalSet(0, 3)}, {})
    assert cond is not None
    clip = tvm.arith.detect_clip_bound(tvm.tir.all(x * 1 < 10, x > 2), [x])
    assert clip[0] is not None


def test_solver() -> None:
    """Systems of equations and of inequalities."""
    x, y = te.var("x"), te.var("y")
    solution = tvm.arith.solve_linear_equations([tvm.tir.EQ(x + y, 20), tvm.tir.EQ(x - y, 10)], [x, y])
    assert list(solution.dst.variables) == []
    assert solution.src_to_dst[x].value == 15 and solution.src_to_dst[y].value == 5
    ranges = {x: tvm.ir.Range(-10, 10), y: tvm.ir.Range(-10, 10)}
    solved = tvm.arith.solve_linear_inequalities([tvm.tir.LE(x + y, 3), tvm.tir.GE(x - y, 0)], [x, y], ranges)
    assert solved is not None


def test_iter_map() -> None:
    """Affine maps of iterators."""
    x = (tvm.tir.Var("x", "int32"), 10)
    res = tvm.arith.detect_iter_map([x[0]], {x[0]: tvm.ir.Range(0, 10)})
    assert len(res) == 1
    assert isinstance(res[0], tvm.arith.IterSumExpr)
    y = tvm.tir.Var("y", "int32")
    fused = tvm.arith.detect_iter_map([x[0] * 8 + y], {x[0]: tvm.ir.Range(0, 10), y: tvm.ir.Range(0, 8)})
    assert fused[0].args[0].extent.value == 80


def test_layouts() -> None:
    """Data layouts: axes, factors, conversions of indices and shapes."""
    layout = tvm.tir.layout("NCHW16c")
    assert len(layout) == 5 and "c" in layout and layout.index_of("c") == 4 and layout.factor_of("c") == 16
    assert layout[0] == "N" and layout[-1] == "c"
    assert len(tvm.tir.layout("")) == 0
    bij = tvm.tir.bijective_layout("NCHW", "NCHW16c")
    assert [int(d) for d in bij.forward_shape((1, 32, 7, 7))] == [1, 2, 7, 7, 16]
    assert [int(d) for d in bij.backward_shape((1, 2, 7, 7, 16))] == [1, 32, 7, 7]
    assert [int(d) for d in bij.forward_index([0, 18, 6, 6])] == [0, 1, 6, 6, 2]
    assert [int(d) for d in bij.backward_index([0, 1, 6, 6, 2])] == [0, 18, 6, 6]
