"""What unit tests of the graph language ask: nodes, modules, parsing, gradients, passes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
import tilewright.testing
from tilewright import relay, te
from tilewright.ir import IRModule
from tilewright.relay import transform
from tilewright.relay.prelude import Prelude
from tilewright.relay.testing import count, create_workload, rand, run_infer_type, run_opt_pass


def test_ir_nodes() -> None:
    """Printing, spans, types, constants, calls, functions."""
    span = relay.Span(relay.SourceName("foo.py"), 1, 1, 1, 1)
    assert span.source_name.name == "foo.py"
    t = relay.TensorType([1, 2, 3], "float32")
    assert t.dtype == "float32" and [int(d) for d in t.shape] == [1, 2, 3]
    tv = relay.TypeVar("a")
    assert tv.kind == relay.TypeKind.Type
    ft = relay.FuncType([], relay.TupleType([]), [tv], [])
    assert ft.type_params[0] == tv
    arr = tvm.nd.array(np.array([1.0, 2.0]))
    const = relay.Constant(arr)
    assert (const.data.numpy() == arr.numpy()).all()
    assert len(relay.Tuple([]).fields) == 0
    lv = relay.Var("x")
    assert lv.name_hint == "x" and lv.type_annotation is None
    lv = relay.Var("x", relay.TensorType((2,)))
    assert lv.type_annotation == relay.TensorType((2,))
    gv = relay.GlobalVar("f")
    assert gv.name_hint == "f"
    fn = relay.Function([lv], relay.op.add(lv, lv), relay.TensorType((2,)), [tv])
    assert fn.params[0] == lv and fn.type_params[0] == tv
    fn = fn.with_attr("test_attribute", "value")
    assert fn.attrs["test_attribute"] == "value"
    fn = fn.with_attr("n", 3)
    assert fn.attrs["n"] == 3
    call = relay.Call(relay.op.op.get("add"), [lv, lv], None, None)
    assert call.op.name == "add" and len(call.args) == 2
    let = relay.Let(lv, relay.const(1), lv)
    assert let.var == lv
    iff = relay.If(relay.var("cond"), relay.var("l"), relay.var("r"))
    assert iff.cond.name_hint == "cond"
    item = relay.TupleGetItem(relay.Var("t"), 1)
    assert item.index == 1
    attr = tvm.ir.make_node("DictAttrs", axis=1)
    assert attr["axis"] == 1


def test_constant_kinds() -> None:
    """``relay.const`` keeps or chooses data types as TVM does."""
    assert relay.const(1).data.dtype == "int32"
    assert relay.const(1.0).data.dtype == "float32"
    assert relay.const(True).data.dtype == "bool"
    assert relay.const(1, "int64").data.dtype == "int64"
    assert relay.const(np.zeros((2,), "float64")).data.dtype == "float32"
    assert relay.const([1, 2]).data.dtype == "int32"
    assert relay.const(tvm.nd.array(np.zeros((2,), "int8"))).data.dtype == "int8"


def test_operators_on_expressions() -> None:
    """Arithmetic between expressions, and between expressions and Python numbers."""
    x = relay.var("x", shape=(2,))
    for made, name in (
        (x + x, "add"),
        (x - x, "subtract"),
        (x * x, "multiply"),
        (x / x, "divide"),
        (-x, "negative"),
    ):
        assert made.op.name == name
    assert (x < x).op.name == "less" and (x >= x).op.name == "greater_equal"
    assert x.astype("int8").op.name == "cast"
    with pytest.raises(TypeError):
        _ = x + 1
    call = relay.var("f")(x)
    assert isinstance(call, relay.Call)


def test_mod_add_and_lookup() -> None:
    """Functions by name and by variable; texts; functions from expressions."""
    x = relay.var("x", shape=())
    mod = IRModule.from_expr(relay.Function([x], x + relay.const(1.0)))
    assert "main" in mod and mod["main"].params[0].name_hint == "x"
    gv = relay.GlobalVar("other")
    y = relay.var("y", shape=())
    mod[gv] = relay.Function([y], y)
    assert mod.get_global_var("other") == gv and mod["other"].params[0].name_hint == "y"
    assert {g.name_hint for g in mod.get_global_vars()} == {"main", "other"}
    text = mod.astext()
    assert text.startswith('#[version = "0.0.5"]\n') and "def @main" in text
    mod.update(IRModule({"third": relay.Function([], relay.const(1))}))
    assert "third" in mod
    again = tvm.parser.fromtext(text)
    assert tvm.ir.structural_equal(again["main"], transform.InferType()(mod)["main"])
    with pytest.raises(tvm.TVMError):
        mod.get_global_var("nothing")


PARSED = [
    ("1", lambda: relay.const(1)),
    ("10f", lambda: relay.const(10.0)),
    ("3.5", lambda: relay.const(3.5)),
    ("True", lambda: relay.const(True)),
    ("()", lambda: relay.Tuple([])),
    ("(0,)", lambda: relay.Tuple([relay.const(0)])),
    ("(0, 1)", lambda: relay.Tuple([relay.const(0), relay.const(1)])),
    ("1 + 1", lambda: relay.add(relay.const(1), relay.const(1))),
    ("1 * 1 + 2", lambda: relay.add(relay.multiply(relay.const(1), relay.const(1)), relay.const(2))),
    ("1 < 2", lambda: relay.less(relay.const(1), relay.const(2))),
    ("fn () { 0 }", lambda: relay.Function([], relay.const(0))),
    ("if (True) { 0 } else { 1 }", lambda: relay.If(relay.const(True), relay.const(0), relay.const(1))),
    ("(1, 2).0", lambda: relay.TupleGetItem(relay.Tuple([relay.const(1), relay.const(2)]), 0)),
]


@pytest.mark.parametrize(("text", "expected"), PARSED)
def test_parse_expr(text: str, expected: Any) -> None:
    """Single expressions."""
    parsed = tvm.parser.parse_expr(text)
    assert tvm.ir.structural_equal(parsed, expected(), map_free_vars=True)


def test_parse_let_graph_function_types() -> None:
    """Lets, sequences, graph variables, typed functions, matches."""
    mod = tvm.parser.parse(
        """
        #[version = "0.0.5"]
        type List[A] { Cons(A, List[A]), Nil, }
        def @length[A](%xs: List[A]) -> int32 {
          match (%xs) {
            Cons(_, %rest) => 1 + @length(%rest),
            Nil => 0,
          }
        }
        def @main(%x: Tensor[(3, 4), float32], %y: Tensor[(4), float32]) -> Tensor[(3, 4), float32] {
          %0 = add(%x, %y);
          let %z = nn.relu(%0);
          nn.softmax(%z, axis=1)
        }
        """
    )
    assert {"length", "main"} <= {g.name_hint for g in mod.get_global_vars()}
    main = mod["main"]
    assert isinstance(main.body, relay.Let)
    assert main.ret_type == relay.TensorType((3, 4))
    again = tvm.parser.fromtext(mod.astext())
    assert tvm.ir.structural_equal(mod, again)
    for bad in ('#[version = "0.0.5"] def @main() { %x }', '#[version = "0.0.5"] def @main(%x, %x) { %x }'):
        with pytest.raises((tvm.TVMError, tvm.error.DiagnosticError)):
            tvm.parser.parse(bad)


def test_parse_metadata_round_trip() -> None:
    """A module with constants prints its meta data and is read again."""
    data = np.random.default_rng(0).random((2, 3)).astype("float32")
    x = relay.var("x", shape=(2, 3))
    mod = IRModule.from_expr(relay.Function([x], x + relay.const(data)))
    text = mod.astext()
    assert "#[metadata]" in text and "meta[relay.Constant][0]" in text
    tvm.ir.assert_structural_equal(tvm.parser.parse(text), transform.InferType()(mod))
    assert "#[metadata]" not in mod.astext(show_meta_data=False)


def test_gradient() -> None:
    """Forward values and gradients of both orders, through both modes."""
    t = relay.TensorType((10, 10), "float32")
    x, y = relay.var("x", t), relay.var("y", t)
    func = run_infer_type(relay.Function([x, y], relay.sum(x * y)))
    for mode in ("first_order", "higher_order"):
        back = run_infer_type(relay.transform.gradient(func, mode=mode))
        assert back.checked_type == relay.FuncType(
            [t, t], relay.TupleType([relay.TensorType(()), relay.TupleType([t, t])])
        )
        a, b = rand("float32", 10, 10), rand("float32", 10, 10)
        forward, (grad_x, grad_y) = relay.create_executor().evaluate(back)(a, b)
        np.testing.assert_allclose(forward.numpy(), (a.numpy() * b.numpy()).sum(), rtol=1e-4)
        np.testing.assert_allclose(grad_x.numpy(), b.numpy())
        np.testing.assert_allclose(grad_y.numpy(), a.numpy())


def test_check_grad() -> None:
    """relay.testing.check_grad on functions."""
    from tilewright.relay.testing import check_grad

    x, y = relay.var("x", shape=(3, 4), dtype="float64"), relay.var("y", shape=(4,), dtype="float64")
    check_grad(relay.Function([x, y], relay.tanh(x * y)))
    check_grad(relay.Function([x], relay.nn.softmax(x)), mode="first_order")
    i = relay.var("x", shape=(2, 3, 4, 4), dtype="float64")
    check_grad(relay.Function([i], relay.nn.avg_pool2d(i, (2, 2))), eps=1e-4)


def test_passes_in_the_manner_of_upstream() -> None:
    """before/expected pairs for a handful of passes."""
    x = relay.var("x", shape=(1, 16))
    c = np.array([1.0] * 16, "float32")
    before = relay.Function([x], relay.add(relay.add(relay.const(c), relay.const(c)), x))
    after = run_opt_pass(before, transform.FoldConstant())
    expected = run_infer_type(relay.Function([x], relay.add(relay.const(c + c), x)))
    tvm.ir.assert_structural_equal(after, expected)
    y = relay.nn.dropout(x)
    assert tvm.ir.structural_equal(
        run_opt_pass(relay.Function([x], relay.exp(y)), transform.SimplifyInference()),
        run_infer_type(relay.Function([x], relay.exp(x))),
    )
    z = relay.Function([x], relay.add(relay.nn.relu(x), relay.nn.relu(x)))
    cse = run_opt_pass(z, transform.EliminateCommonSubexpr())
    assert cse.body.args[0] is cse.body.args[1] or cse.body.args[0].same_as(cse.body.args[1])
    v = relay.Var("v")
    dead = relay.Function([x], relay.Let(v, relay.exp(x), x))
    tvm.ir.assert_structural_equal(
        run_opt_pass(run_infer_type(dead), transform.DeadCodeElimination()),
        run_infer_type(relay.Function([x], x)),
    )
    anf = run_opt_pass(
        relay.Function([x], relay.exp(relay.tanh(x))),
        tvm.transform.Sequential([transform.ToANormalForm(), transform.InferType()]),
    )
    assert isinstance(anf.body, relay.Let)
    back = run_opt_pass(anf, transform.ToGraphNormalForm())
    assert isinstance(back.body, relay.Call)
    fused = run_opt_pass(
        relay.Function([x], relay.exp(relay.squeeze(relay.add(x, relay.const(1.0))))), transform.FuseOps()
    )
    assert isinstance(fused.body.op, relay.Function) and fused.body.op.attrs["Primitive"] == 1
    simplified = run_opt_pass(
        relay.Function([x], relay.reshape(relay.reshape(x, (4, 4)), (16,))), transform.SimplifyExpr()
    )
    assert (
        list(map(int, simplified.body.attrs.newshape)) == [16]
        and simplified.body.args[0] == simplified.params[0]
    )
    fast = run_opt_pass(relay.Function([x], relay.exp(x)), transform.FastMath())
    assert "fast_exp" in fast.astext()
    inlined = IRModule.from_expr(relay.Function([x], relay.exp(x)))
    assert transform.RemoveUnusedFunctions()(inlined)["main"] is not None


def test_nat_and_count() -> None:
    """relay.testing's natural numbers."""
    from tilewright.relay.testing import add_nat_definitions, make_nat_expr, make_nat_value

    mod = IRModule()
    p = Prelude(mod)
    add_nat_definitions(p)
    mod["main"] = relay.Function([], mod.get_global_var("nat_double")(make_nat_expr(p, 3)))
    value = relay.create_executor(mod=mod).evaluate()()
    assert count(p, value) == 6
    assert count(p, make_nat_value(p, 4)) == 4


def test_free_and_bound_vars() -> None:
    """relay.analysis on variables and types."""
    x, y = relay.Var("x"), relay.Var("y")
    let = relay.Let(y, relay.const(1), relay.add(x, y))
    assert set(relay.analysis.free_vars(let)) == {x}
    assert set(relay.analysis.bound_vars(let)) == {y}
    assert set(relay.analysis.all_vars(let)) == {x, y}
    tv = relay.TypeVar("t")
    generic = relay.Function([], relay.const(1), relay.TensorType(()), [tv])
    assert list(relay.analysis.free_type_vars(generic)) == []
    assert list(relay.analysis.bound_type_vars(generic)) == [tv]
    assert list(relay.analysis.all_type_vars(generic)) == [tv]
    assert list(relay.analysis.free_type_vars(relay.TupleType([tv]))) == [tv]
    assert relay.analysis.well_formed(let)
    assert not relay.analysis.well_formed(relay.Let(y, relay.const(1), relay.Let(y, relay.const(2), y)))
    assert relay.analysis.check_basic_block_normal_form(relay.const(1))


def test_bind_and_param_dict() -> None:
    """Binding of parameters, and their bytes."""
    x, y = relay.var("x", shape=(2,)), relay.var("y", shape=(2,))
    f = relay.Function([x, y], x + y)
    bound = relay.bind(f, {y: relay.const(np.ones(2, "float32"))})
    assert [p.name_hint for p in bound.params] == ["x"]
    params = {"x": tvm.nd.array(np.arange(10, dtype="float32")), "y": tvm.nd.array(np.zeros(2, "int8"))}
    loaded = relay.load_param_dict(relay.save_param_dict(params))
    assert sorted(loaded) == ["x", "y"]
    np.testing.assert_array_equal(loaded["x"].numpy(), np.arange(10))
    assert tvm.runtime.load_param_dict(tvm.runtime.save_param_dict(params))["y"].dtype == "int8"


def test_expr_functors() -> None:
    """Visitors and mutators of one's own."""
    from tilewright.relay.expr_functor import ExprFunctor, ExprMutator, ExprVisitor

    class Count(ExprVisitor):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def visit_call(self, call: Any) -> None:
            self.calls += 1
            super().visit_call(call)

    class Swap(ExprMutator):
        def visit_call(self, call: Any) -> Any:
            made = super().visit_call(call)
            if made.op == relay.op.op.get("add"):
                return relay.multiply(*made.args)
            return made

    x = relay.var("x", shape=(2,))
    f = relay.Function([x], relay.exp(x + x) + x)
    counter = Count()
    counter.visit(f)
    assert counter.calls == 3
    made = Swap().visit(f)
    assert tvm.ir.structural_equal(
        made, relay.Function([x], relay.multiply(relay.exp(relay.multiply(x, x)), x))
    )
    with pytest.raises(NotImplementedError):
        ExprFunctor().visit(x)
    names: list[str] = []
    relay.analysis.post_order_visit(
        f, lambda e: names.append(e.op.name) if isinstance(e, relay.Call) else None
    )
    assert names == ["add", "exp", "add"]


def test_type_errors_are_reported() -> None:
    """Ill-typed programs raise."""
    x, y = relay.var("x", shape=(10, 4)), relay.var("y", shape=(5, 10, 3))
    with pytest.raises(tvm.TVMError):
        run_infer_type(relay.Function([x, y], relay.add(x, y)))
    f = relay.Function([relay.var("a", "float32")], relay.const(1.0))
    with pytest.raises(tvm.error.TVMError):
        run_infer_type(relay.Call(f, [relay.const(1, "int32")]))
    with pytest.raises(ValueError):
        relay.const(1).checked_type


def test_create_workload_and_executor_kinds() -> None:
    """A workload by each kind of executor gives the same numbers."""
    net = relay.testing.mlp.get_net(1, 10, (1, 4, 4))
    mod, params = create_workload(net)
    data = np.random.rand(1, 1, 4, 4).astype("float32")
    results = [
        relay.create_executor(kind, mod=mod, device=tvm.cpu(), target="llvm")
        .evaluate()(data, **params)
        .numpy()
        for kind in ("debug", "graph", "vm")
    ]
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0], rtol=1e-4, atol=1e-6)


def test_type_functor_and_kind_check() -> None:
    """Kinds of types, and a visitor of them."""
    assert relay.analysis.check_kind(relay.TensorType((1,))) == relay.TypeKind.Type
    with pytest.raises(tvm.TVMError):
        relay.analysis.check_kind(
            relay.TupleType([relay.GlobalTypeVar("g"), relay.TypeVar("s", relay.TypeKind.ShapeVar)])
        )
    n = te.var("n")
    assert relay.scalar_type("float32") == relay.TensorType(())
    assert relay.TensorType((n,)) == relay.TensorType((n,))
