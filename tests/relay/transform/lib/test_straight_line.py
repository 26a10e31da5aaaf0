"""Programs as graphs: what is resolved, what stays, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from tests.relay.programs import let_chain
from tests.relay.transform.text import module

from tilewright import relay
from tilewright.ir.structural import assert_structural_equal
from tilewright.relay.transform.lib.straight_line import COMPILED_APART, NotStraightLine, straight_line

PROGRAMS = {
    "lets": (
        "def @main(%x: $T) { let %a = exp(%x); let %b = add(%a, %a); %b }",
        "def @main(%x: $T) { %0 = exp(%x); add(%0, %0) }",
    ),
    "functions": (
        """
        def @twice(%f: fn ($T) -> $T, %y: $T) { %f(%f(%y)) }
        def @main(%x: $T) { let %k = exp(%x); @twice(fn (%z: $T) { multiply(%z, %k) }, %x) }
        """,
        "def @main(%x: $T) { %0 = exp(%x); multiply(multiply(%x, %0), %0) }",
    ),
    "tuples": (
        "def @main(%x: $T) { let %t = (%x, (fn (%y: $T) { exp(%y) }, %x)); %0 = %t.1; %0.0(%0.1) }",
        "def @main(%x: $T) { exp(%x) }",
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_resolved(name: str) -> None:
    """Lets, functions and tuples leave a graph of operators."""
    before, after = (module(text) for text in PROGRAMS[name])
    main = before["main"]
    made = relay.Function(main.params, straight_line(main, before))
    assert_structural_equal(made, relay.Function(after["main"].params, after["main"].body))


def test_what_is_a_graph_stays_the_same_object() -> None:
    """Nothing is copied."""
    x = relay.var("x", shape=(4,))
    body = relay.exp(x) + x
    assert straight_line(relay.Function([x], body)) is body


def test_functions_that_are_compiled_apart() -> None:
    """Calls of functions with these attributes stay where asked, and are resolved otherwise."""
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    inner = relay.Function([y], relay.exp(y)).with_attr("Primitive", 1)
    function = relay.Function([x], relay.Call(inner, [x]))
    assert straight_line(function, kept=COMPILED_APART) is function.body
    made: Any = straight_line(function)
    assert made.op.name == "exp" and made.args[0] is x


def test_long_chains() -> None:
    """Ten thousand lets."""
    assert isinstance(straight_line(let_chain(10_000)), relay.Call)


MISTAKES = {
    "has a If": "def @main(%c: bool, %x: $T) { if (%c) { %x } else { exp(%x) } }",
    "has a RefCreate": "def @main(%x: $T) { let %r = ref(%x); ref_read(%r) }",
    "calls a function from within itself": """
        def @f(%x: $T) -> $T { @f(exp(%x)) }
        def @main(%x: $T) -> $T { @f(%x) }
        """,
    "gives a function, not tensors": "def @main(%x: $T) { fn (%y: $T) { add(%x, %y) } }",
}


@pytest.mark.parametrize("message", MISTAKES)
def test_refused(message: str) -> None:
    """What is not a graph is an error that says why."""
    mod = module(MISTAKES[message])
    with pytest.raises(NotStraightLine, match=message):
        straight_line(mod["main"], mod)
