"""Defunctionalization: no function is a value any more, and the values stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.transform.text import module

import tilewright as tvm
from tilewright import relay
from tilewright.ir.type import FuncType
from tilewright.relay.infer import infer_module
from tilewright.relay.interpreter import Interpreter
from tilewright.relay.prelude import Prelude
from tilewright.relay.transform import Defunctionalization
from tilewright.support.errors import TilewrightError

VALUE = np.array([1.0, 2.0, 3.0, 4.0], "float32")


def first_order(mod: Any, function: Any) -> None:
    """Of what the function reaches, nothing but global functions, constructors and operators is called."""
    seen: set[str] = set()
    pending = [function]
    while pending:
        current = pending.pop()

        def look(expr: Any, current: Any = current) -> None:
            if isinstance(expr, relay.Function):
                assert expr is current or expr.is_primitive
            elif isinstance(expr, relay.Call):
                assert not isinstance(expr.op, relay.Var)
                assert not any(isinstance(one, relay.GlobalVar) for one in expr.args)
            elif isinstance(expr, relay.Var):
                assert not isinstance(expr.type_annotation, FuncType)
            elif isinstance(expr, relay.GlobalVar) and expr.name_hint not in seen:
                seen.add(expr.name_hint)
                pending.append(mod[expr.name_hint])

        relay.analysis.post_order_visit(current, look)


def check(mod: Any, *arguments: Any) -> tuple[Any, Any]:
    """Main computes the same without function values; gives the module and the new function."""
    mod = infer_module(mod)
    expected = Interpreter(mod).run(mod["main"], arguments)
    made = Defunctionalization(mod["main"], mod)
    first_order(mod, made)
    assert made.checked_type == mod["main"].checked_type
    np.testing.assert_allclose(Interpreter(mod).run(made, arguments), expected, rtol=1e-6)
    infer_module(mod)
    return mod, made


PROGRAMS = {
    "no functions": "def @main(%x: $T) { exp(%x) }",
    "a closure": "def @main(%x: $T) { let %f = fn (%y: $T) { multiply(%x, %y) }; %f(%f(%x)) }",
    "functions as arguments": """
        def @twice(%f: fn ($T) -> $T, %y: $T) -> $T { %f(%f(%y)) }
        def @main(%x: $T) { @twice(fn (%z: $T) { add(%z, %x) }, @twice(fn (%z: $T) { multiply(%z, %z) }, %x)) }
        """,
    "functions as results": """
        def @adder(%x: $T) { fn (%y: $T) { add(%x, %y) } }
        def @main(%x: $T) { let %f = @adder(exp(%x)); let %g = @adder(%f(%x)); %g(%x) }
        """,
    "functions of functions": """
        def @compose(%f: fn ($T) -> $T, %g: fn ($T) -> $T) { fn (%x: $T) { %f(%g(%x)) } }
        def @main(%x: $T) {
          let %e = fn (%y: $T) { exp(%y) };
          let %n = fn (%y: $T) { negative(%y) };
          @compose(@compose(%e, %n), %n)(%x)
        }
        """,
    "a function by name": """
        def @square(%x: $T) -> $T { multiply(%x, %x) }
        def @apply(%f: fn ($T) -> $T, %x: $T) -> $T { %f(%x) }
        def @main(%x: $T) { @apply(@square, @apply(@square, %x)) }
        """,
    "generic": """
        def @apply[A, B](%f: fn (A) -> B, %a: A) -> B { %f(%a) }
        def @id[A](%a: A) -> A { %a }
        def @main(%x: $T) { @apply(fn (%p: ($T, int32)) { %p.0 }, (@apply(@id, %x), 1)) }
        """,
    "chosen by a branch": """
        def @main(%x: $T) {
          let %f = if (less(sum(%x), 0f)) { fn (%y: $T) { exp(%y) } } else { fn (%y: $T) { add(%x, %y) } };
          %f(%x)
        }
        """,
    "a loop": """
        def @main(%x: $T) {
          let %step = fn (%y: $T) { add(%y, %x) };
          let %loop = fn (%n: int32, %y: $T) -> $T {
            if (equal(%n, 0)) { %y } else { %loop(subtract(%n, 1), %step(%y)) }
          };
          %loop(5, %x)
        }
        """,
    "in a reference": """
        def @main(%x: $T) {
          let %r = ref(fn (%y: $T) { exp(%y) });
          let %old = ref_read(%r);
          let %u = ref_write(%r, fn (%y: $T) { add(%old(%y), %x) });
          let %f = ref_read(%r);
          %f(%x)
        }
        """,
    "a constructor by name": """
        type Box { Box(Tensor[(4), float32]), }
        def @apply[A, B](%f: fn (A) -> B, %a: A) -> B { %f(%a) }
        def @main(%x: $T) { match (@apply(Box, %x)) { Box(%y) => { negative(%y) } } }
        """,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    """Each use of functions as values."""
    check(module(PROGRAMS[name]), VALUE)


def test_lists_of_the_prelude() -> None:
    """Generic functions of the prelude are copied for the types that they are used at; lists hold functions."""
    mod = tvm.IRModule()
    prelude = Prelude(mod)
    cons, nil = mod.get_type("List")[1:]
    kind = relay.TensorType((4,), "float32")
    x, y, z = (relay.var(name, kind) for name in "xyz")
    f = relay.Var("f", relay.FuncType([kind], kind))
    functions = cons(relay.Function([y], y * x), cons(relay.Function([z], z + x), nil()))
    applied = prelude.map(relay.Function([f], f(x)), functions)
    a, b = relay.var("a", kind), relay.var("b", kind)
    mod["main"] = relay.Function([x], prelude.foldl(relay.Function([a, b], a + b), x, applied))
    mod, _ = check(mod, VALUE)
    assert sum(name.name_hint.startswith("map_") for name in mod.functions) >= 1


def test_recursion_of_generic_functions() -> None:
    """A copy calls itself, not the generic function."""
    text = """
        type List[A] { Cons(A, List[A]), Nil, }
        def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
          match (%l) { Cons(%h, %t) => { Cons(%f(%h), @map(%f, %t)) }, Nil => { Nil } }
        }
        def @total(%l: List[$T], %x: $T) -> $T {
          match (%l) { Cons(%h, %t) => { add(%h, @total(%t, %x)) }, Nil => { zeros_like(%x) } }
        }
        def @main(%x: $T) { @total(@map(fn (%y: $T) { multiply(%y, %x) }, Cons(%x, Cons(exp(%x), Nil))), %x) }
        """
    mod, _ = check(module(text), VALUE)
    copies = [name.name_hint for name in mod.functions if name.name_hint.startswith("map")]
    assert sorted(copies) == ["map", "map_0"]


def test_gradients() -> None:
    """The backpropagators of a gradient are functions in references."""
    x = relay.var("x", shape=(4,))
    negative = relay.less(relay.sum(x), relay.const(0.0))
    mod = tvm.IRModule()
    made = relay.transform.gradient(relay.Function([x], relay.If(negative, x * x, relay.exp(x))))
    y = relay.var("y", shape=(4,))
    mod["main"] = relay.Function([y], relay.TupleGetItem(relay.TupleGetItem(relay.Call(made, [y]), 1), 0))
    check(mod, VALUE)


def test_the_virtual_machine_runs_it() -> None:
    """A defunctionalized program compiles."""
    mod, made = check(module(PROGRAMS["functions as arguments"]), VALUE)
    found = relay.create_executor("vm", mod=mod).evaluate(made)(VALUE).numpy()
    np.testing.assert_allclose(found, VALUE * VALUE * VALUE * VALUE + 2 * VALUE, rtol=1e-6)


def test_refused() -> None:
    """Functions at the border, generic ones, and data types that hold functions."""
    mod = infer_module(module("def @main(%f: fn ($T) -> $T, %x: $T) { %f(%x) }"))
    with pytest.raises(TilewrightError, match="it takes or gives functions"):
        Defunctionalization(mod["main"], mod)
    mod = infer_module(module("def @main[A](%a: A) -> A { %a }"))
    with pytest.raises(TilewrightError, match="a generic function cannot be defunctionalized"):
        Defunctionalization(mod["main"], mod)
    text = """
        type Holder { Holder(fn (Tensor[(4), float32]) -> Tensor[(4), float32]), }
        def @main(%x: $T) { match (Holder(fn (%y: $T) { exp(%y) })) { Holder(%f) => { %f(%x) } } }
        """
    mod = infer_module(module(text))
    with pytest.raises(TilewrightError, match="data type Holder holds functions in constructor Holder"):
        Defunctionalization(mod["main"], mod)
