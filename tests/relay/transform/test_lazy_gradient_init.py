"""LazyGradientInit: the same values and types, with zeros and ones that are made late or never."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.ir.op import Op
from tilewright.relay import transform
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.prelude import Prelude
from tilewright.relay.transform import LazyGradientInit
from tilewright.runtime.container import ADT

SHAPE = (2, 3)
TYPE = relay.TensorType(SHAPE, "float32")
VALUE = np.arange(6, dtype="float32").reshape(SHAPE)


def lazy(function: Any, module: Any = None) -> tuple[Any, Any]:
    """The module after the pass, and its main function."""
    module = tvm.IRModule() if module is None else module
    module["main"] = function
    before = transform.InferType()(module)
    after = transform.InferType()(LazyGradientInit()(before))
    assert after["main"].checked_type == before["main"].checked_type
    return after, after["main"]


def run(module: Any, *arguments: Any) -> Any:
    """What main gives."""
    return relay.create_executor("debug", mod=module).evaluate()(*arguments)


class _Recording(Interpreter):
    """Remembers the operators that run."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.names: list[str] = []

    def visit_call(self, node: relay.Call) -> Any:
        if isinstance(node.op, Op):
            self.names.append(node.op.name)
        return super().visit_call(node)


def made(module: Any, *arguments: Any) -> list[str]:
    """The names of the operators that run."""
    recording = _Recording(module)
    recording.run(module["main"], arguments)
    return recording.names


X, Y = relay.var("x", shape=SHAPE), relay.var("y", shape=SHAPE)

BODIES = {
    "add": (X + X, [], VALUE * 2),
    "multiply": (X * X, [], VALUE * VALUE),
    "zeros": (X + relay.zeros(SHAPE, "float32"), ["zeros", "add"], VALUE),
    "zeros_like": (relay.zeros_like(X) + X, ["zeros", "add"], VALUE),
    "ones": (X * relay.ones(SHAPE, "float32"), ["ones", "multiply"], VALUE),
    "ones_like": (relay.ones_like(X) * X, ["ones", "multiply"], VALUE),
    "zero times": (relay.zeros_like(X) * X, ["multiply"], VALUE * 0),
    "one is made": (relay.exp(relay.ones_like(X)), [], np.full(SHAPE, np.e, "float32")),
    "tuple": (relay.Tuple([X, X * relay.const(2.0)]), [], [VALUE, VALUE * 2]),
    "condition": (relay.If(relay.less(relay.sum(X), relay.const(0.0)), X, X + X), [], VALUE * 2),
}


@pytest.mark.parametrize("name", BODIES)
def test_values(name: str) -> None:
    """The function gives what it gave, and does not do what need not be done."""
    body, never, expected = BODIES[name]
    module, _ = lazy(relay.Function([X], body))
    found = run(module, VALUE)
    for one, other in zip(
        found if isinstance(found, (list, ADT)) else [found],
        expected if isinstance(expected, (list, ADT)) else [expected],
        strict=True,
    ):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-6)
    assert set(made(module, VALUE)) & set(never) == set()


def test_broadcast_sums_are_no_cells() -> None:
    """A zero of another shape is added: the result has the larger shape."""
    module, _ = lazy(relay.Function([X], relay.zeros((4, 2, 3), "float32") + X))
    np.testing.assert_array_equal(run(module, VALUE).numpy(), np.broadcast_to(VALUE, (4, 2, 3)))


@pytest.mark.parametrize("mode", ["first_order", "higher_order"])
def test_gradients(mode: str) -> None:
    """Of a gradient, with its references: the same values with fewer sums."""
    function = transform.gradient(relay.Function([X, Y], X * Y * relay.exp(X)), mode=mode)
    module, _ = lazy(function)
    value, (dx, dy) = run(module, VALUE / 6, VALUE)
    x = VALUE / 6
    np.testing.assert_allclose(value.numpy(), x * VALUE * np.exp(x), rtol=1e-5)
    np.testing.assert_allclose(dx.numpy(), (1 + x) * VALUE * np.exp(x), rtol=1e-5)
    np.testing.assert_allclose(dy.numpy(), x * np.exp(x), rtol=1e-5)
    assert "zeros" not in made(module, x, VALUE)


def test_functions_within() -> None:
    """Closures and references hold cells."""
    f, place, y = relay.Var("f"), relay.Var("place"), relay.var("z", shape=SHAPE)
    inner = relay.Function([y], y * relay.RefRead(place))
    body = relay.Let(place, relay.RefCreate(relay.ones_like(X)), relay.Let(f, inner, f(f(X))))
    module, _ = lazy(relay.Function([X], body))
    np.testing.assert_array_equal(run(module, VALUE).numpy(), VALUE)
    assert "multiply" not in made(module, VALUE)


def test_lists_of_cells() -> None:
    """Generic data types hold cells; functions of the module keep their types."""
    module = tvm.IRModule()
    Prelude(module)
    cons, nil = module.get_type("List")[1:]
    head, tail = relay.var("h"), relay.var("t")
    matched = relay.Match(
        cons(X + relay.zeros_like(X), nil()),
        [
            relay.Clause(
                relay.PatternConstructor(cons, [relay.PatternVar(head), relay.PatternVar(tail)]), head
            ),
            relay.Clause(relay.PatternConstructor(nil), X),
        ],
    )
    module["twice"] = relay.Function([Y], Y + Y)
    after, _ = lazy(relay.Function([X], module.get_global_var("twice")(matched)), module)
    np.testing.assert_array_equal(run(after, VALUE).numpy(), VALUE * 2)


def test_what_cannot_be_lazy_stays() -> None:
    """A function that takes a list, and a generic one, stay as they are."""
    module = tvm.IRModule()
    Prelude(module)
    listed = relay.Var("l", relay.TypeCall(module.get_global_type_var("List"), [TYPE]))
    module["main"] = relay.Function([listed], module.get_global_var("hd")(listed))
    before = transform.InferType()(module)
    after = LazyGradientInit()(before)
    assert after["main"] is before["main"]
    assert after["map"] is before["map"]


def test_unknown_dimensions() -> None:
    """Zeros in the shape of a tensor that is known at run time alone."""
    x = relay.var("x", shape=(relay.Any(),))
    module, _ = lazy(relay.Function([x], relay.Tuple([relay.zeros_like(x), relay.zeros_like(x) + x])))
    zero, same = run(module, VALUE[0])
    np.testing.assert_array_equal(zero.numpy(), [0, 0, 0])
    np.testing.assert_array_equal(same.numpy(), VALUE[0])
