"""The interpreter: the value of each kind of expression, the order of effects, and the messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.relay.programs import chain, let_chain
from tests.relay.transform.text import module

import tilewright as tvm
from tilewright import relay
from tilewright.ir.op import Op
from tilewright.relay.infer import infer_module
from tilewright.relay.interpreter import Closure, ConstructorValue, Interpreter, RefValue
from tilewright.support.errors import InternalError, OpNotImplemented, RuntimeFailure

VALUE = np.array([1.0, 2.0, 3.0, 4.0], "float32")


def run(text: str, *arguments: Any) -> Any:
    """What main gives."""
    mod = infer_module(module(text))
    return Interpreter(mod).run(mod["main"], arguments)


PROGRAMS: dict[str, tuple[str, Any]] = {
    "operator": ("def @main(%x: $T) { add(%x, %x) }", VALUE * 2),
    "constant": ("def @main(%x: $T) { 2.5f }", np.float32(2.5)),
    "tuple": ("def @main(%x: $T) { (%x, (1, ())) }", (VALUE, (1, ()))),
    "field": ("def @main(%x: $T) { (1, %x).1 }", VALUE),
    "let": ("def @main(%x: $T) { let %y = add(%x, %x); let %z = add(%y, %x); %z }", VALUE * 3),
    "true": ("def @main(%x: $T) { if (True) { %x } else { negative(%x) } }", VALUE),
    "false": ("def @main(%x: $T) { if (False) { %x } else { negative(%x) } }", -VALUE),
    "closure": (
        "def @main(%x: $T) { let %f = fn (%y: $T) { multiply(%x, %y) }; %f(%f(%x)) }",
        VALUE**3,
    ),
    "a closure made twice": (
        """
        def @adder(%x: $T) { fn (%y: $T) { add(%x, %y) } }
        def @main(%x: $T) { let %one = @adder(%x); let %two = @adder(%one(%x)); (%one(%x), %two(%x)) }
        """,
        (VALUE * 2, VALUE * 3),
    ),
    "recursion": (
        """
        def @power(%n: int32, %x: $T) -> $T {
          if (equal(%n, 0)) { ones_like(%x) } else { multiply(%x, @power(subtract(%n, 1), %x)) }
        }
        def @main(%x: $T) { @power(4, %x) }
        """,
        VALUE**4,
    ),
    "a let that calls itself": (
        """
        def @main(%x: $T) {
          let %f = fn (%n: int32, %y: $T) -> $T {
            if (equal(%n, 0)) { %y } else { %f(subtract(%n, 1), add(%y, %x)) }
          };
          %f(3, %x)
        }
        """,
        VALUE * 4,
    ),
    "references": (
        """
        def @main(%x: $T) {
          let %r = ref(%x);
          let %before = ref_read(%r);
          let %u = ref_write(%r, add(%x, %x));
          (%before, ref_read(%r), %u)
        }
        """,
        (VALUE, VALUE * 2, ()),
    ),
    "a counter": (
        """
        def @main(%x: $T) {
          let %count = ref(0);
          let %next = fn () { let %u = ref_write(%count, add(ref_read(%count), 1)); ref_read(%count) };
          let %a = %next();
          let %b = %next();
          (%a, %b)
        }
        """,
        (1, 2),
    ),
    "match": (
        """
        type List[A] { Cons(A, List[A]), Nil, }
        def @total(%l: List[$T], %x: $T) -> $T {
          match (%l) { Cons(%h, %t) => { add(%h, @total(%t, %x)) }, Nil => { zeros_like(%x) } }
        }
        def @main(%x: $T) { @total(Cons(%x, Cons(add(%x, %x), Nil)), %x) }
        """,
        VALUE * 3,
    ),
    "nested patterns": (
        """
        type Pair[A] { Pair(A, A), }
        def @main(%x: $T) {
          match ((Pair(%x, negative(%x)), 1)) { (Pair(_, %b), %n) => { (%b, %n) } }
        }
        """,
        (-VALUE, 1),
    ),
    "a constructor as a function": (
        """
        type Box { Box(Tensor[(4), float32]), }
        def @apply[A, B](%f: fn (A) -> B, %a: A) -> B { %f(%a) }
        def @main(%x: $T) { match (@apply(Box, %x)) { Box(%y) => { %y } } }
        """,
        VALUE,
    ),
}


def compare(found: Any, expected: Any) -> None:
    """The same structure of the same arrays."""
    if isinstance(expected, tuple):
        assert isinstance(found, tuple) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            compare(one, other)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    """The value of each kind of expression."""
    text, expected = PROGRAMS[name]
    compare(run(text, VALUE), expected)


def test_kinds_of_values() -> None:
    """Functions, references and data values have classes of their own."""
    text = """
        type Choice { One(Tensor[(4), float32]), Two, }
        def @main(%x: $T) { (fn (%y: $T) { %y }, ref(%x), One(%x), Two) }
        """
    function, reference, one, two = run(text, VALUE)
    assert isinstance(function, Closure)
    assert isinstance(reference, RefValue) and reference.value is VALUE
    assert isinstance(one, ConstructorValue) and one.constructor is not None
    assert one.constructor.name_hint == "One" and one[0] is VALUE and len(one) == 1
    assert list(two) == []


def test_shared_expressions_are_computed_once() -> None:
    """Within a call; another call computes again."""
    calls: list[Any] = []

    class Counting(Interpreter):
        def visit_call(self, node: relay.Call) -> Any:
            if isinstance(node.op, Op) and node.op.name == "exp":
                calls.append(node)
            return super().visit_call(node)

    x = relay.var("x", shape=(4,))
    shared = relay.exp(x)
    function = relay.Function([x], shared + shared)
    interpreter = Counting()
    interpreter.run(function, [VALUE])
    assert len(calls) == 1
    interpreter.run(function, [VALUE])
    assert len(calls) == 2


def test_only_the_chosen_branch_is_evaluated() -> None:
    """The other would fail."""
    op = relay.op.op.register("test.no_reference")
    op.add_type_rel("same", lambda types, attrs: types[0])
    x = relay.var("x", shape=(4,))
    function = relay.Function([x], relay.If(relay.const(True), x, relay.Call(op, [x])))
    compare(Interpreter().run(function, [VALUE]), VALUE)
    with pytest.raises(OpNotImplemented, match=r"operator test\.no_reference has no reference to run"):
        Interpreter().run(relay.Function([x], relay.Call(op, [x])), [VALUE])


def test_values_keep_what_types_promise() -> None:
    """A reference whose result is not of the relation's type is found out."""
    op = relay.op.op.register("test.liar")
    op.set_num_inputs(1)
    op.add_type_rel("same", lambda types, attrs: types[0])
    op.set_attr("FReference", lambda attrs, data: data[:2])
    x = relay.var("x", shape=(4,))
    mod = infer_module(tvm.IRModule.from_expr(relay.Function([x], relay.Call(op, [x]))))
    with pytest.raises(InternalError, match=r"reference of test\.liar gave float32\(2,\), its relation says"):
        Interpreter(mod).run(mod["main"], [VALUE])


def test_failures() -> None:
    """Each says what went wrong."""
    x = relay.var("x", shape=(4,))
    with pytest.raises(RuntimeFailure, match="variable x has no value here"):
        Interpreter().run(relay.exp(x))
    with pytest.raises(RuntimeFailure, match="no function @f in the module"):
        Interpreter().run(relay.GlobalVar("f")(x))
    with pytest.raises(RuntimeFailure, match="1 parameters is called with 2 arguments"):
        Interpreter().run(relay.Function([x], x), [VALUE, VALUE])
    with pytest.raises(RuntimeFailure, match="a ndarray is called, which is not a function"):
        Interpreter().run(relay.Function([x], relay.Call(x, [])), [VALUE])
    text = """
        type Choice { One(int32), Two, }
        def @main(%x: $T) { match? (Two) { One(%i) => { %i } } }
        """
    with pytest.raises(RuntimeFailure, match="no clause of a match fits"):
        run(text, VALUE)


def test_the_frame_after_a_failure() -> None:
    """An interpreter that failed inside a call runs the next program as if nothing had been."""
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    interpreter = Interpreter()
    start = interpreter.frame
    failing = relay.Function([x], relay.Call(relay.Function([y], relay.Call(y, [])), [x]))
    with pytest.raises(RuntimeFailure):
        interpreter.run(failing, [VALUE])
    assert interpreter.frame is start
    compare(interpreter.run(relay.Function([x], x + x), [VALUE]), VALUE * 2)


@pytest.mark.parametrize("make", [chain, let_chain])
def test_long_chains(make: Any) -> None:
    """Ten thousand operators in a row."""
    compare(Interpreter().run(make(10_000, name="negative"), [VALUE]), VALUE)


def test_deep_recursion() -> None:
    """A loop of ten thousand calls."""
    text = """
        def @main(%n: int32) -> int32 { if (equal(%n, 0)) { 0 } else { add(1, @main(subtract(%n, 1))) } }
        """
    assert run(text, np.array(10_000, "int32")) == 10_000


def test_a_loop_needs_no_stack() -> None:
    """As many turns as it likes, through branches, bindings and clauses."""
    text = """
        def @main(%x: $T) {
          let %f = fn (%n: int32, %y: $T) -> $T {
            if (equal(%n, 0)) { %y } else { let %m = subtract(%n, 1); %f(%m, %x) }
          };
          %f(200000, %x)
        }
    """
    np.testing.assert_equal(run(text, VALUE), VALUE)


def test_the_debug_executor() -> None:
    """``create_executor("debug")`` runs functions and expressions, with arguments by place and by name."""
    x, y = relay.var("x", shape=(4,)), relay.var("y", shape=(4,))
    evaluate = relay.create_executor("debug").evaluate(relay.Function([x, y], x - y))
    compare(evaluate(VALUE, VALUE * 2).numpy(), -VALUE)
    compare(evaluate(VALUE, y=VALUE * 2).numpy(), -VALUE)
    assert relay.create_executor("debug").evaluate(relay.const(3) + relay.const(4)).numpy() == 7
