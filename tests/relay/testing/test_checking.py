"""Helpers for tests: passes on expressions, counting, gradients."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import relay
from tilewright.relay import testing
from tilewright.relay.testing.temp_op_attr import TempOpAttr
from tilewright.support.errors import TilewrightError


def test_an_expression_through_a_pass() -> None:
    """A function stays a function, another expression the body that it was; types are there afterwards."""
    x = relay.var("x", shape=(2, 3))
    made = testing.run_infer_type(relay.exp(x))
    assert made.checked_type == relay.TensorType((2, 3))
    function = testing.run_opt_pass(relay.Function([x], relay.exp(x)), relay.transform.ToANormalForm())
    assert isinstance(function, relay.Function) and isinstance(function.body, relay.Let)


def test_a_pass_may_use_the_prelude() -> None:
    """The pass sees a module with the prelude's functions where it is asked for."""
    seen = []

    @relay.transform.function_pass(opt_level=0)
    def look(function: relay.Function, module: relay.IRModule, context: object) -> relay.Function:
        seen.append("foldl" in module)
        return function

    x = relay.var("x", shape=())
    testing.run_opt_pass(relay.Function([x], x), look, import_prelude=True)
    testing.run_opt_pass(relay.Function([x], x), look)
    assert seen[0] and not seen[-1]


def test_operators_are_counted() -> None:
    """A call that is shared counts once."""
    x = relay.var("x", shape=(2,))
    shared = relay.exp(x)
    assert testing.count_ops(shared + shared * relay.exp(x)) == {"exp": 2, "multiply": 1, "add": 1}


def test_random_arrays() -> None:
    """Of any element type and shape, between zero and one."""
    array = testing.rand("float64", 3, 4).numpy()
    assert array.shape == (3, 4) and array.dtype == np.float64
    assert array.min() >= 0 and array.max() < 1


def test_right_gradients_pass() -> None:
    """Of arguments that are given, of random ones, and of several results."""
    x, y = relay.var("x", shape=(3,), dtype="float64"), relay.var("y", shape=(3,), dtype="float64")
    function = relay.Function([x, y], relay.Tuple([relay.exp(x) * y, relay.sin(y)]))
    testing.check_grad(function)
    testing.check_grad(function, scale=1.0, mean=2.0, mode="first_order")
    testing.check_grad(function, inputs=[np.array([0.1, 0.2, 0.3]), np.ones(3)])


def test_wrong_gradients_fail() -> None:
    """The message names the argument; one that is not asked about is not looked at."""
    x, y = relay.var("x", shape=(3,), dtype="float64"), relay.var("y", shape=(3,), dtype="float64")
    function = relay.Function([x, y], relay.exp(x) + relay.sin(y))
    given = [np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5, 0.6])]
    with TempOpAttr("sin", "FPrimalGradient", lambda call, grad: [grad * call]):
        with pytest.raises(AssertionError, match="the gradient of argument 1"):
            testing.check_grad(function, inputs=given)
        testing.check_grad(function, inputs=given, test_inputs=[given[0]])


def test_test_inputs_are_among_the_inputs() -> None:
    """An equal array is not the same argument."""
    x = relay.var("x", shape=(3,), dtype="float64")
    with pytest.raises(TilewrightError, match="one of inputs"):
        testing.check_grad(relay.Function([x], relay.exp(x)), [np.ones(3)], [np.ones(3)])
    with pytest.raises(TilewrightError, match="takes a function"):
        testing.check_grad(relay.exp(x))
