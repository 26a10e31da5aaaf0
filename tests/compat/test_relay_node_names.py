"""Functors, expressions and patterns of the graph level by TVM's names: methods that programs override or call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay, tir
from tilewright.relay import type_functor
from tilewright.relay.adt import Pattern
from tilewright.relay.dataflow_pattern import is_op, wildcard
from tilewright.relay.expr import TempExpr
from tilewright.relay.transform import LayoutConfig, ToCPS

FLOATS = relay.TensorType((2, 3), "float32")
HANDLE, VARIABLE = relay.GlobalTypeVar("Box"), relay.TypeVar("a")
TYPES = {
    "type_var": VARIABLE,
    "incomplete_type": relay.IncompleteType(),
    "type_relation": relay.TypeRelation(max, [FLOATS, VARIABLE], 1),
    "ref_type": relay.RefType(FLOATS),
    "global_type_var": HANDLE,
    "type_call": HANDLE(FLOATS),
    "type_data": relay.TypeData(HANDLE, [VARIABLE], [relay.Constructor("Wrap", [VARIABLE], HANDLE)]),
}


@pytest.mark.parametrize("kind", TYPES)
def test_types_are_visited_by_their_methods(kind: str) -> None:
    """An overriding method gets the type; the base's goes to ``visit_default``, which is an error in the base."""
    method, typ = f"visit_{kind}", TYPES[kind]

    class Default(type_functor.TypeFunctor):
        def visit_default(self, typ: Any) -> Any:
            return ("default", typ)

    class Own(Default):
        pass

    setattr(Own, method, lambda self, typ: ("own", getattr(super(Own, self), method)(typ)))
    assert Default().visit(typ) == ("default", typ)
    assert Own().visit(typ) == ("own", ("default", typ))
    with pytest.raises(NotImplementedError):
        getattr(type_functor.TypeFunctor(), method)(typ)


def test_types_and_names_in_functors_of_expressions() -> None:
    """``visit_type`` and ``visit_global_id`` give back what they get, and can be overridden."""
    assert relay.ExprFunctor().visit_type(FLOATS) is FLOATS
    name = relay.GlobalVar("f")
    assert relay.ExprMutator().visit_global_id(name) is name

    class Retyped(relay.ExprMutator):
        """Makes every parameter a tensor of halves."""

        def visit_type(self, typ: Any) -> Any:
            return relay.TensorType(super().visit_type(typ).shape, "float16")

        def visit_var(self, var: relay.Var) -> relay.Var:
            return relay.Var(var.name_hint, self.visit_type(var.type_annotation))

    x = relay.var("x", FLOATS)
    made = relay.transform.InferType()(
        tvm.IRModule.from_expr(Retyped().visit(relay.Function([x], relay.exp(x))))
    )
    assert str(made["main"].ret_type) == "Tensor[(2, 3), float16]"


def test_expressions_of_a_pass() -> None:
    """A program derives its own; what they stand for is for ``realize`` to say."""

    class Scaled(TempExpr):
        def __init__(self, value: relay.Expr, factor: float) -> None:
            self.value, self.factor = value, factor

        def realize(self) -> relay.Expr:
            with pytest.raises(NotImplementedError, match="Scaled does not say"):
                super().realize()
            return self.value * relay.const(self.factor)

    x = relay.var("x", FLOATS)
    scaled = Scaled(x, 2.5)
    assert isinstance(scaled, relay.Expr)
    assert tvm.ir.structural_equal(scaled.realize(), x * relay.const(2.5))


def test_fields_of_tuples() -> None:
    """By position, from the back too; beyond the end is an error."""
    x, y = relay.var("x", FLOATS), relay.const(1)
    pair = relay.Tuple([x, y])
    assert pair[0] is x and pair[-1] is y and list(pair) == [x, y]
    with pytest.raises(IndexError):
        _ = pair[2]


def test_patterns_of_data_types() -> None:
    """Every form of pattern is a ``Pattern``; only those stand in clauses."""
    x = relay.var("x")
    box = relay.Constructor("Wrap", [FLOATS], HANDLE)
    forms = [
        relay.PatternWildcard(),
        relay.PatternVar(x),
        relay.PatternTuple([relay.PatternVar(x)]),
        relay.PatternConstructor(box, [relay.PatternVar(x)]),
    ]
    assert all(isinstance(one, Pattern) for one in forms)
    assert not isinstance(x, Pattern) and not isinstance(box, Pattern)


def test_patterns_of_one_type_or_shape() -> None:
    """``has_dtype`` and ``has_shape`` match what the type of an expression has, once it is inferred."""
    x = relay.var("x", FLOATS)
    made = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x))))["main"].body
    exponential = is_op("exp")(wildcard())
    assert exponential.has_dtype("float32").match(made)
    assert not exponential.has_dtype("float16").match(made)
    assert exponential.has_shape((2, 3)).match(made)
    assert not exponential.has_shape((3, 2)).match(made)
    assert not is_op("log")(wildcard()).has_shape((2, 3)).match(made)
    assert is_op("exp")(wildcard().has_dtype("float32").has_shape((2, 3))).match(made)


def test_layers_to_skip_are_forgotten() -> None:
    """After ``reset`` no layer keeps its layout."""

    def layouts(config: LayoutConfig) -> list[str]:
        x, w = relay.var("x", shape=(1, 4, 8, 8)), relay.var("w", shape=(4, 4, 3, 3))
        body = relay.nn.conv2d(relay.nn.conv2d(x, w, padding=1), w, padding=1)
        module = tvm.IRModule.from_expr(relay.Function([x, w], body))
        with config, tvm.transform.PassContext(opt_level=3):
            made = relay.transform.ConvertLayout({"nn.conv2d": ["NHWC", "default"]})(module)
        found: list[str] = []
        relay.analysis.post_order_visit(
            made["main"],
            lambda node: (
                found.append(str(node.attrs.data_layout))
                if isinstance(node, relay.Call) and node.op.name == "nn.conv2d"
                else None
            ),
        )
        return found

    config = LayoutConfig(skip_layers=[0])
    assert layouts(config) == ["NCHW", "NHWC"]
    config.reset()
    assert config.skip_counter == 0 and not config.skip_layers
    assert layouts(config) == ["NHWC", "NHWC"]


def test_continuation_passing_style() -> None:
    """The function takes a continuation, and gives it what it gave back before; ``un_cps`` makes it plain again."""
    x = relay.var("x", FLOATS)
    module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], relay.exp(x) + x)))
    converted = ToCPS(module["main"], module)
    assert isinstance(converted, relay.Function) and len(converted.params) == 2
    assert isinstance(converted.params[-1].type_annotation, relay.FuncType)
    plain = relay.transform.un_cps(converted)
    values = np.ones((2, 3), "float32")
    made = relay.create_executor("debug", tvm.IRModule.from_expr(plain)).evaluate()(values)
    np.testing.assert_allclose(made.numpy(), np.exp(values) + values, rtol=1e-6)


def test_weights_for_nnpack() -> None:
    """Tiles of eight by eight for taps of three by three; NNPACK, which makes them, is an error to be without."""
    weight = relay.var("w", shape=(5, 4, 3, 3))
    transform = relay.nn.contrib_conv2d_winograd_nnpack_weight_transform
    for out_dtype, expected in (("", "float32"), ("float16", "float16")):
        call = transform(weight, 3, out_dtype)
        assert call.attrs.convolution_algorithm == 3
        module = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([weight], call)))
        assert str(module["main"].ret_type) == f"Tensor[(5, 4, 8, 8), {expected}]"
    with pytest.raises(tvm.error.OpNotImplemented, match="nnpack_weight_transform"):
        relay.build(module, "llvm")
    wrong = transform(relay.var("w", shape=(5, 4, 5, 5)), 3)
    with pytest.raises(tvm.error.TVMError, match="three by three"):
        relay.transform.InferType()(tvm.IRModule.from_expr(wrong))


def test_definitions_of_a_module() -> None:
    """Their names, and types that apply them."""
    module = tvm.IRModule()
    assert module.get_global_type_vars() == []
    module[HANDLE] = TYPES["type_data"]
    assert module.get_global_type_vars() == [HANDLE]
    applied = VARIABLE(FLOATS)
    assert isinstance(applied, relay.TypeCall) and applied.func is VARIABLE and list(applied.args) == [FLOATS]
    assert isinstance(TYPES["type_relation"], tvm.ir.TypeConstraint)
    assert not isinstance(FLOATS, tvm.ir.TypeConstraint)


def test_roots_of_expressions() -> None:
    """Both levels have one root; types have another."""
    for expr in (relay.const(1), tir.IntImm("int32", 1), relay.GlobalVar("f"), tir.Add(1, 2)):
        assert isinstance(expr, tvm.ir.BaseExpr)
    assert not isinstance(FLOATS, tvm.ir.BaseExpr)


def test_attributes_as_a_mapping() -> None:
    """The names, and each value by its name; a program's own attributes give the two."""
    call = relay.nn.conv2d(relay.var("x"), relay.var("w"), strides=(2, 1), padding=(1, 1))
    assert "strides" in list(call.attrs.keys())
    assert [int(one) for one in call.attrs["strides"]] == [2, 1]
    for error in (AttributeError, KeyError):
        with pytest.raises(error, match="Conv2DAttrs has no attribute 'stride'"):
            _ = call.attrs["stride"]

    class Own(tvm.ir.Attrs):
        def keys(self) -> list[str]:
            with pytest.raises(NotImplementedError):
                super().keys()
            return ["size"]

        def __getitem__(self, item: str) -> Any:
            if item not in self.keys():
                return super().__getitem__(item)
            return 3

    assert Own().items() == [("size", 3)] and Own().get_int("size") == 3
    with pytest.raises(NotImplementedError):
        _ = Own()["shape"]
