"""What does not depend on the inputs is computed at compile time."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.relay.transform.checks import after, check, operators, typed

import tilewright as tvm
from tilewright import relay
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay import transform
from tilewright.relay.transform.fold_constant import LARGE

FOLD = transform.FoldConstant()


def test_arithmetic_on_constants() -> None:
    """The constants' part of a program is one constant."""
    x = relay.var("x", shape=(3,))
    c = relay.const(np.array([1, 2, 3], "float32"))
    before = relay.Function([x], x + (c + c) * c)
    expected = relay.Function([x], x + relay.const(np.array([2, 8, 18], "float32")))
    check(FOLD, before, expected)


def test_heavy_operators_fold() -> None:
    """A product of weights is a weight."""
    x = relay.var("x", shape=(2, 4))
    a = relay.const(np.ones((5, 4), "float32"))
    b = relay.const(np.full((4, 4), 2, "float32"))
    made = check(FOLD, relay.nn.dense(x, relay.nn.dense(a, b)))
    assert operators(made) == ["nn.dense"]


def test_tuples_and_their_fields() -> None:
    """split and concatenate of constants."""
    c = relay.const(np.arange(6, dtype="float32"))
    x = relay.var("x", shape=(6,))
    first, second = relay.split(c, 2)
    made = check(FOLD, x + relay.concatenate([second, first], 0))
    assert operators(made) == ["add"]


def test_a_variable_bound_to_a_constant() -> None:
    """Its uses are the constant, and the binding goes."""
    x = relay.var("x", shape=())
    v = relay.Var("v")
    before = relay.Function([x], relay.Let(v, relay.const(2.0) + relay.const(1.0), x * v))
    check(FOLD, before, relay.Function([x], x * relay.const(3.0)))


def test_a_known_condition_chooses() -> None:
    """The other branch goes."""
    x = relay.var("x", shape=(3,))
    condition = relay.less(relay.const(1), relay.const(2))
    check(
        FOLD,
        relay.Function([x], relay.If(condition, relay.exp(x), relay.log(x))),
        relay.Function([x], relay.exp(x)),
    )


def test_shapes_of_static_types() -> None:
    """They are known without the elements."""
    x = relay.var("x", shape=(3, 4))
    shape = relay.shape_of(x, "int64")
    made = typed(relay.Function([x], relay.Tuple([shape, relay.ndarray_size(x, "int32")])))
    made = check(FOLD, made)
    assert operators(made) == []
    np.testing.assert_array_equal(made.body.fields[0].data.numpy(), np.array([3, 4], "int64"))
    assert made.body.fields[1].data.numpy() == 12


def test_a_shape_that_is_not_known_stays() -> None:
    """There is nothing to compute it from."""
    x = relay.var("x", shape=(relay.Any(), 4))
    assert operators(after(FOLD, relay.shape_of(x))) == ["shape_of"]


def test_large_results_of_cheap_operators_stay() -> None:
    """A tensor of zeros is made at run time; a small one is part of the program."""
    big = relay.zeros((LARGE,), "float32")
    small = relay.zeros((4,), "float32")
    assert operators(after(FOLD, big)) == ["zeros"]
    assert operators(after(FOLD, small)) == []
    assert operators(after(FOLD, relay.broadcast_to(relay.const(np.ones(64, "float32")), (4096, 64)))) == [
        "broadcast_to"
    ]


def test_large_results_that_are_no_larger_than_their_arguments_fold() -> None:
    """A transposed weight replaces the weight."""
    weight = relay.const(np.ones((256, 256), "float32"))
    assert operators(after(FOLD, relay.transpose(weight))) == []


def test_effects_and_devices_stay() -> None:
    """What must happen at run time does."""
    c = relay.const(np.ones(3, "float32"))
    assert operators(after(FOLD, relay.annotation.stop_fusion(c + c))) == ["annotation.stop_fusion"]
    assert operators(after(FOLD, relay.annotation.on_device(c + c, tvm.cpu(0)))) == ["on_device"]


def test_primitive_functions_stay() -> None:
    """They are kernels already."""
    p = relay.var("p", shape=(3,))
    kernel = relay.Function([p], p + (relay.const(1.0) + relay.const(1.0)), attrs={"Primitive": 1})
    x = relay.var("x", shape=(3,))
    assert operators(after(FOLD, relay.Function([x], kernel(x)))).count("add") == 2


def test_an_expression_alone() -> None:
    """FoldConstantExpr gives an expression back."""
    made = transform.FoldConstantExpr(relay.const(1.0) + relay.const(2.0), tvm.IRModule())
    assert_structural_equal(made, relay.const(3.0))


def test_spans_are_kept() -> None:
    """A folded constant comes from the call that it replaces."""
    given = typed(relay.const(1.0) + relay.const(2.0))
    made = after(FOLD, given)
    assert made.body.span == given.body.span
    assert made.body.span is not None


def test_a_long_chain_of_constants() -> None:
    """10,000 operators are one constant."""
    made: Any = relay.const(np.ones(3, "float32"))
    for _ in range(10_000):
        made = made + relay.const(1.0)
    folded = after(FOLD, made)
    assert folded.body.data.numpy().tolist() == [10_001.0] * 3


def constant_of(expr: Any) -> relay.Constant:
    """The only constant that a sum or product with a variable has."""
    return next(argument for argument in expr.body.args if isinstance(argument, relay.Constant))


def test_views_share_the_memory_of_the_weight() -> None:
    """With ``views`` a large transpose copies nothing, and what follows it reads the weight in place."""
    weight = relay.const(np.random.default_rng(0).standard_normal((320, 256)).astype("float32"))
    x = relay.var("x", shape=(256, 320))
    transposed = constant_of(after(transform.FoldConstant(views=True), x + relay.transpose(weight)))
    assert transposed.data.memory_range().start == weight.data.memory_range().start
    blocked = relay.layout_transform(relay.transpose(weight), "NC", "NC16c")
    y = relay.var("y", shape=(256, 20, 16))
    made = [constant_of(after(transform.FoldConstant(views), y + blocked)) for views in (False, True)]
    assert made[0].data.strides == made[1].data.strides
    np.testing.assert_array_equal(made[0].data.numpy(), made[1].data.numpy())


def test_views_change_no_bit_of_what_is_computed_of_them() -> None:
    """References get transposed arguments as if they had been copied: sums are in the same order."""
    weight = relay.const(np.random.default_rng(1).standard_normal((320, 256)).astype("float32"))
    x = relay.var("x", shape=(256,))
    y = x + relay.sum(relay.exp(relay.transpose(weight)) * relay.transpose(weight), axis=1)
    made = [constant_of(after(transform.FoldConstant(views), y)).data.numpy() for views in (False, True)]
    np.testing.assert_array_equal(*made)
