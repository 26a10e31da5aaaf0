"""Heavy operators in a narrow type."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.relay.transform.checks import after, operators, random_inputs, typed, value

import tilewright as tvm
from tilewright import relay
from tilewright.ir.op import Op
from tilewright.relay import transform
from tilewright.relay.expr_functor import post_order_visit
from tilewright.support.errors import OpNotImplemented, TilewrightError

MIXED = transform.ToMixedPrecision()
X = relay.var("x", shape=(1, 4, 6, 6))
W = relay.var("w", shape=(8, 4, 3, 3))


def mixed(given: Any, **options: Any) -> tuple[relay.Function, relay.Function]:
    """Before and after, compared within the narrow type's accuracy."""
    before = typed(given)
    made = after(transform.ToMixedPrecision(**options), before)
    inputs = random_inputs(before)
    expected, found = value(before, inputs), value(made, inputs)
    for one, other in zip(np.atleast_1d(expected), np.atleast_1d(found), strict=True):
        np.testing.assert_allclose(other.astype("float64"), one.astype("float64"), rtol=3e-2, atol=3e-2)
    return before, made


def types(function: relay.Function, name: str) -> list[str]:
    """The types that calls of an operator give."""
    found: list[str] = []

    def look(expr: Any) -> None:
        if isinstance(expr, relay.Call) and isinstance(expr.op, Op) and expr.op.name == name:
            found.append(str(expr.checked_type.dtype))

    post_order_visit(function, look)
    return found


def test_a_convolution_adds_up_in_float32() -> None:
    """From narrow arguments to a narrow result."""
    _, made = mixed(relay.nn.conv2d(X, W))
    convolution = made.body.args[0]
    assert operators(made) == ["cast", "cast", "nn.conv2d", "cast"]
    assert convolution.attrs.out_dtype == "float32"
    assert [str(one.checked_type.dtype) for one in convolution.args] == ["float16", "float16"]
    assert str(made.ret_type.dtype) == "float16"


def test_what_follows_stays_narrow() -> None:
    """Biases, which are variables or constants, are converted; an exponential gets float32."""
    bias = relay.var("bias", shape=(8, 1, 1))
    _, made = mixed(relay.nn.softmax(relay.nn.relu(relay.nn.conv2d(X, W) + bias) * relay.const(0.5), axis=1))
    assert types(made, "add") == types(made, "nn.relu") == types(made, "multiply") == ["float16"]
    assert types(made, "nn.softmax") == ["float32"]


def test_what_does_not_follow_stays_wide() -> None:
    """Nothing is converted where there is no heavy operator."""
    before, made = mixed(relay.nn.relu(X + relay.const(1.0)))
    assert "cast" not in operators(made)
    assert made.ret_type == before.ret_type


def test_a_sum_with_something_wide_is_wide() -> None:
    """The narrow operand is converted back: the wide one would lose digits."""
    _, made = mixed(relay.nn.conv2d(X, W) + relay.exp(relay.var("y", shape=(1, 8, 4, 4))))
    assert types(made, "add") == ["float32"]


def test_a_value_is_converted_once() -> None:
    """However many users it has."""
    weights = [relay.var(f"w{n}", shape=(8, 4, 3, 3)) for n in range(3)]
    _, made = mixed(
        relay.nn.conv2d(X, weights[0]) + relay.nn.conv2d(X, weights[1]) + relay.nn.conv2d(X, weights[2])
    )
    assert operators(made).count("cast") == 4 + 3


def test_back_and_forth_costs_nothing() -> None:
    """What was narrowed for one user is wide as it was for another."""
    wide = relay.exp(X)
    made = after(MIXED, relay.Tuple([relay.nn.conv2d(wide, W), relay.exp(wide)]))
    assert types(made, "exp") == ["float32", "float32"]
    assert operators(made).count("cast") == 3


def test_tuples() -> None:
    """Joined and split tensors are converted field by field."""
    both = relay.concatenate([relay.nn.conv2d(X, W), relay.var("y", shape=(1, 8, 4, 4))], 1)
    _, made = mixed(relay.split(both, 2, 1)[0])
    assert types(made, "concatenate") == ["float16"]
    parts = relay.split(relay.nn.conv2d(X, W), 2, 1)
    _, made = mixed(relay.exp(parts[0]) + relay.exp(parts[1]))
    assert types(made, "exp") == ["float32", "float32"]


def test_integers_and_float64_stay() -> None:
    """It is about float32."""
    for dtype, result in (("int8", "int32"), ("float64", "float64")):
        x, w = relay.var("x", shape=(2, 4), dtype=dtype), relay.var("w", shape=(3, 4), dtype=dtype)
        before = typed(relay.nn.dense(x, w, out_dtype=result))
        assert operators(after(MIXED, before)) == ["nn.dense"]


def test_control_flow_keeps_its_types() -> None:
    """Branches, bound variables and functions."""
    condition = relay.var("c", shape=(), dtype="bool")
    v = relay.Var("v")
    body = relay.Let(v, relay.nn.conv2d(X, W), relay.If(condition, relay.nn.relu(v), relay.exp(v)))
    before = typed(relay.Function([X, W, condition], body))
    made = after(MIXED, before)
    assert types(made, "nn.relu") == ["float16"]
    assert made.ret_type == before.ret_type


def test_other_functions_keep_their_types() -> None:
    """Callers rely on them; main's result may be narrow."""
    layer = relay.GlobalVar("layer")
    x, w = relay.var("x", shape=(1, 4, 6, 6)), relay.var("w", shape=(8, 4, 3, 3))
    module = tvm.IRModule({layer: relay.Function([X, W], relay.nn.conv2d(X, W))})
    module["main"] = relay.Function([x, w], relay.nn.relu(layer(x, w)))
    made = transform.InferType()(MIXED(module))
    assert str(made["layer"].ret_type.dtype) == "float32"
    assert str(made["main"].ret_type.dtype) == "float32"


def test_bfloat16() -> None:
    """Another narrow type."""
    made = after(transform.ToMixedPrecision("bfloat16"), relay.nn.relu(relay.nn.conv2d(X, W)))
    assert types(made, "nn.relu") == ["bfloat16"]


@pytest.fixture
def unknown() -> Iterator[str]:
    """An operator without a rule."""
    yield "nn.correlation"
    Op.get("nn.correlation").reset_attr("FTVMMixedPrecisionConversionType")


def test_operators_without_a_rule(unknown: str) -> None:
    """An error, a warning, or nothing; and they stay in float32."""
    given = relay.nn.correlation(X, X, 1, 1, 1, 1, 0, True, "NCHW")
    with pytest.raises(OpNotImplemented, match=unknown):
        after(transform.ToMixedPrecision(missing_op_mode=0), given)
    with pytest.warns(UserWarning, match=unknown):
        after(transform.ToMixedPrecision(missing_op_mode=1), given)
    assert types(after(transform.ToMixedPrecision(missing_op_mode=2), given), unknown) == ["float32"]


def test_an_operators_own_rule(unknown: str) -> None:
    """It comes before the lists."""
    relay.op.register_mixed_precision_conversion(unknown, lambda call, narrow: [0, narrow, narrow])
    given = relay.nn.correlation(X, X, 1, 1, 1, 1, 0, True, "NCHW")
    assert types(after(transform.ToMixedPrecision(missing_op_mode=0), given), unknown) == ["float16"]


def test_options_that_make_no_sense() -> None:
    """They are refused."""
    with pytest.raises(TilewrightError, match="float32"):
        transform.ToMixedPrecision("float32")
    with pytest.raises(TilewrightError, match="missing_op_mode"):
        transform.ToMixedPrecision(missing_op_mode=7)


def test_a_long_chain() -> None:
    """3,000 operators."""
    w = relay.var("w", shape=(4, 4))
    made: Any = relay.var("x", shape=(2, 4))
    for _ in range(1_000):
        made = relay.exp(relay.nn.relu(relay.nn.dense(made, w)))
    assert set(types(after(MIXED, made), "nn.relu")) == {"float16"}
