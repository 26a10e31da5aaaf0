"""Type inference: each rule, each message, and how much is looked at."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from tests.relay.programs import chain, let_chain
from tests.relay.transform.text import module

import tilewright as tvm
from tilewright import relay
from tilewright.relay.infer import TypeInferenceError, infer_expr, infer_function, infer_module, type_of
from tilewright.relay.op.definition import RelationError
from tilewright.support.errors import OpError

T = relay.TensorType((4,), "float32")
X = relay.var("x", shape=(4,))


def result(text: str, name: str = "main") -> str:
    """The type of a function's result, as text."""
    return str(infer_module(module(text))[name].checked_type.ret_type)


VECTOR = "Tensor[(4), float32]"
RULES = {
    "parameter": ("def @main(%x: $T) { %x }", VECTOR),
    "scalar constant": ("def @main() { 1f }", "float32"),
    "operator": ("def @main(%x: $T) { sum(%x, axis=[0], keepdims=True) }", "Tensor[(1), float32]"),
    "tuple": ("def @main(%x: $T) { (%x, 2, ()) }", f"({VECTOR}, int32, ())"),
    "field": ("def @main(%x: $T) { %0 = (1, (%x, 2f)); %1 = %0.1; %1.0 }", VECTOR),
    "let": ("def @main(%x: $T) { let %y = exp(%x); let %z = (%y, %y); %z.1 }", VECTOR),
    "if": ("def @main(%c: bool, %x: $T) { if (%c) { %x } else { exp(%x) } }", VECTOR),
    "reference": ("def @main(%x: $T) { let %r = ref(%x); ref_read(%r) }", VECTOR),
    "write": ("def @main(%x: $T) { let %r = ref(%x); ref_write(%r, %x) }", "()"),
    "function": ("def @main(%x: $T) { fn (%y: $T) { add(%x, %y) } }", f"fn ({VECTOR}) -> {VECTOR}"),
    "call": ("def @main(%x: $T) { let %f = fn (%y: $T) { exp(%y) }; %f(%f(%x)) }", VECTOR),
    "types found by use": ("def @main(%x: $T) { let %f = fn (%y) { exp(%y) }; %f(%x) }", VECTOR),
    "functions as arguments": (
        "def @main(%x: $T) { let %f = fn (%g, %y) { %g(%g(%y)) }; %f(fn (%z: $T) { exp(%z) }, %x) }",
        VECTOR,
    ),
    "recursion": (
        "def @main(%n: int32, %x: $T) -> $T { if (equal(%n, 0)) { %x } else { @main(subtract(%n, 1), exp(%x)) } }",
        VECTOR,
    ),
    "recursion without annotation": (
        "def @main(%n: int32, %x: $T) { if (equal(%n, 0)) { %x } else { @main(subtract(%n, 1), exp(%x)) } }",
        VECTOR,
    ),
    "mutual recursion": (
        """
        def @even(%n: int32) -> bool { if (equal(%n, 0)) { True } else { @odd(subtract(%n, 1)) } }
        def @odd(%n: int32) -> bool { if (equal(%n, 0)) { False } else { @even(subtract(%n, 1)) } }
        def @main(%n: int32) { @even(%n) }
        """,
        "bool",
    ),
    "a let that calls itself": (
        """
        def @main(%n: int32) {
          let %f = fn (%k: int32) -> int32 { if (equal(%k, 0)) { 0 } else { %f(subtract(%k, 1)) } };
          %f(%n)
        }
        """,
        "int32",
    ),
    "generic": (
        "def @id[A](%a: A) -> A { %a } def @main(%x: $T) { (@id(%x), @id(1), @id[$T](%x)) }",
        f"({VECTOR}, int32, {VECTOR})",
    ),
    "generic as argument": (
        """
        def @id[A](%a: A) -> A { %a }
        def @apply[A, B](%f: fn (A) -> B, %a: A) -> B { %f(%a) }
        def @main(%x: $T) { @apply(@id, %x) }
        """,
        VECTOR,
    ),
    "data type": (
        """
        type List[A] { Cons(A, List[A]), Nil, }
        def @main(%x: $T) { Cons(%x, Nil) }
        """,
        f"List[{VECTOR}]",
    ),
    "match": (
        """
        type List[A] { Cons(A, List[A]), Nil, }
        def @main(%l: List[$T], %x: $T) { match (%l) { Cons(%h, Cons(%k, _)) => { add(%h, %k) }, _ => { %x } } }
        """,
        VECTOR,
    ),
    "match of tuples": (
        "def @main(%x: $T) { match ((%x, 1)) { (%a, %b) => { (%b, %a) } } }",
        f"(int32, {VECTOR})",
    ),
    "an unknown dimension": (
        "def @main(%x: Tensor[(?, 4), float32]) { sum(%x, axis=[1]) }",
        "Tensor[(?), float32]",
    ),
}


@pytest.mark.parametrize("name", RULES)
def test_rules(name: str) -> None:
    """The type of each kind of expression."""
    text, expected = RULES[name]
    assert result(text) == expected


MISTAKES = {
    "operator": (
        "def @main(%x: $T, %y: Tensor[(3), float32]) { add(%x, %y) }",
        r"add cannot be applied to \(Tensor\[\(4\), float32\], Tensor\[\(3\), .*\): .*4 and 3 .*\(rule broadcast",
    ),
    "condition": (
        "def @main(%x: $T) { if (%x) { %x } else { %x } }",
        "the condition of an if has type Tensor.*, expected bool",
    ),
    "branches": (
        "def @main(%c: bool, %x: $T) { if (%c) { %x } else { 1f } }",
        "the branches of an if have types Tensor.* and float32: .*numbers of dimensions differ",
    ),
    "annotation": (
        "def @main(%x: $T) { let %y: int32 = exp(%x); %y }",
        "variable y has type Tensor.*, expected int32",
    ),
    "result": (
        "def @main(%x: $T) -> int32 { %x }",
        "the function's result has type Tensor.*, expected int32",
    ),
    "number of arguments": (
        "def @f(%x: $T) { %x } def @main(%x: $T) { @f(%x, %x) }",
        "@f takes 1 arguments, the call has 2",
    ),
    "argument": (
        "def @f(%x: int32) { %x } def @main(%x: $T) { @f(%x) }",
        "argument 0 of @f has type Tensor.*, expected int32",
    ),
    "no function": (
        "def @main(%x: $T) { %x(%x) }",
        "a value of type Tensor.* is called, which is not a function",
    ),
    "no tuple": (
        "def @main(%x: $T) { %x.0 }",
        "field 0 is read from a value of type Tensor.*, which is not a tuple",
    ),
    "no field": ("def @main(%x: $T) { (%x, %x).2 }", "field 2 is read from a tuple of 2 fields"),
    "no reference": ("def @main(%x: $T) { ref_read(%x) }", "what is read has type Tensor"),
    "write": ("def @main(%x: $T) { let %r = ref(1); ref_write(%r, %x) }", "what is written to has type ref"),
    "clauses": (
        """
        type Choice { One(int32), Two, }
        def @main(%c: Choice, %x: $T) { match (%c) { One(%i) => { %i }, Two => { %x } } }
        """,
        "the result of a clause has type Tensor.*, expected int32",
    ),
    "pattern": (
        """
        type Choice { One(int32), Two, }
        def @main(%x: $T) { match? (%x) { One(%i) => { %i } } }
        """,
        "a pattern of constructor One has type Choice.*, expected Tensor",
    ),
    "a function that takes itself": ("def @main() { fn (%f) { %f(%f) } }", "would have to contain itself"),
    "a variable of no type": ("def @main() { fn (%f) { 1 } }", "cannot be inferred.*annotate it"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_messages(name: str) -> None:
    """Each mistake has a message with the types and the line of the text."""
    text, message = MISTAKES[name]
    with pytest.raises(TypeInferenceError, match=f"(?s){message}") as caught:
        infer_module(module(text))
    assert caught.value.place is not None
    assert isinstance(caught.value, TypeError)


def test_more_messages() -> None:
    """Mistakes that the text form does not let through."""
    add = relay.op.op.get("add")
    with pytest.raises(TypeInferenceError, match="add takes 2 arguments, the call has 1"):
        infer_expr(relay.Call(add, [X]))
    with pytest.raises(TypeInferenceError, match="operator add is used as a value"):
        infer_expr(relay.Tuple([add]))
    with pytest.raises(TypeInferenceError, match="there is no function @nowhere"):
        infer_expr(relay.GlobalVar("nowhere")(X))
    constructor = relay.Constructor("Lonely", [], relay.GlobalTypeVar("Nothing"))
    with pytest.raises(TypeInferenceError, match="type Nothing of constructor Lonely is not defined"):
        infer_expr(constructor())
    bare = relay.op.op.register("test.bare")
    with pytest.raises(TypeInferenceError, match=r"operator test\.bare has no type relation"):
        infer_expr(relay.Call(bare, [X]))
    open_variable = relay.Var("open")
    with pytest.raises(
        TypeInferenceError, match=r"call of exp cannot be inferred from arguments of types \(\?\)"
    ):
        infer_expr(relay.exp(open_variable))


def test_relations_wait_until_more_is_known() -> None:
    """A call whose arguments are not known yet is asked again when they are."""
    y, f = relay.Var("y"), relay.Var("f")
    # Within the function nothing is known of y; the call tells.
    body = relay.Let(f, relay.Function([y], relay.exp(relay.exp(y) + y)), f(X))
    made = infer_function(relay.Function([X], body))
    assert made.checked_type.ret_type == T
    inner = made.body.value
    assert inner.params[0].type_annotation == T
    assert inner.ret_type == T


def test_arguments_follow_from_others() -> None:
    """A weight without a type gets the one that the data asks for."""
    weight = relay.var("weight")
    body = relay.nn.dense(relay.var("data", shape=(2, 5)), weight, units=3)
    made = infer_expr(body)
    assert made.args[1].checked_type == relay.TensorType((3, 5), "float32")  # type: ignore[attr-defined]


def test_annotations_are_filled_in() -> None:
    """Variables and functions that said nothing say it afterwards; those that did are the same objects."""
    y = relay.Var("y")
    function = relay.Function([X], relay.Let(y, relay.exp(X), y))
    made = infer_function(function)
    assert made.params[0] is X
    assert made.ret_type == T
    assert made.body.var.type_annotation == T  # type: ignore[attr-defined]
    assert infer_function(made) is made


def test_settled_expressions_are_not_looked_at_again() -> None:
    """After a change, the relations of what stayed are not asked."""
    asked: list[Any] = []
    op = relay.op.op.register("test.counted")
    op.set_num_inputs(1)

    def relation(types: Any, attrs: Any) -> Any:
        asked.append(types)
        return types[0]

    op.add_type_rel("counted", relation)
    body: Any = X
    for _ in range(10):
        body = relay.Call(op, [body])
    infer_expr(body)
    assert len(asked) == 10
    infer_expr(relay.Call(op, [body]))
    assert len(asked) == 11


def test_a_shared_expression_is_looked_at_once() -> None:
    """A graph of two to the fiftieth paths has fifty nodes."""
    body: Any = X
    for _ in range(50):
        body = body + body
    assert infer_expr(body).checked_type == T


@pytest.mark.parametrize("make", [chain, let_chain])
def test_long_chains(make: Any) -> None:
    """20,000 operators in a row take seconds, not minutes. Annotations that were filled in are looked at once more;
    from then on inference costs next to nothing."""
    mod = tvm.IRModule.from_expr(make(20_000))
    start = time.process_time()
    made = infer_module(mod)
    assert time.process_time() - start < 15
    assert infer_module(made) is made
    start = time.process_time()
    assert infer_module(made) is made
    assert time.process_time() - start < 0.1


def test_type_of() -> None:
    """The type of an expression, inferred where need be."""
    assert type_of(relay.const(np.zeros((2, 3), "int8"))) == relay.TensorType((2, 3), "int8")
    typed = infer_expr(relay.exp(X))
    assert type_of(typed) is typed.checked_type


def test_a_relation_that_refuses() -> None:
    """The reason that a relation gives is in the message, with the rule's name."""
    op = relay.op.op.register("test.refusing")
    op.set_num_inputs(1)

    def relation(types: Any, attrs: Any) -> Any:
        raise RelationError("because of the moon")

    op.add_type_rel("lunar", relation)
    with pytest.raises(TypeInferenceError, match=r"because of the moon \(rule lunar\)"):
        infer_expr(relay.Call(op, [X]))


def test_an_empty_list_has_the_type_of_its_place() -> None:
    """The type of a call of a generic constructor is not settled: it may move to another place."""
    text = """
        type List[A] { Cons(A, List[A]), Nil, }
        def @main(%x: $T) { Cons(%x, Nil) }
        """
    mod = infer_module(module(text))
    nil = mod["main"].body.args[1]
    integers = relay.Call(mod["main"].body.op, [relay.const(1), nil])
    assert str(infer_expr(integers, mod).checked_type) == "List[int32]"


def test_relations_by_name() -> None:
    """An operator of a user's takes one of the relations that many operators share, and its arguments are described."""
    op = relay.op.op.register("test.infer.named")
    op.set_num_inputs(1)
    op.add_argument("data", "Tensor", "The input.")
    with pytest.raises(OpError, match=r"no type relation 'Same', only Broadcast, .*Identity"):
        op.add_type_rel("Same")
    op.add_type_rel("Identity")
    call = infer_expr(relay.Call(op, [relay.var("x", shape=(2, 3), dtype="int8")]))
    assert call.checked_type == relay.TensorType((2, 3), "int8")
    assert [(one.name, one.type_info, one.description) for one in op.arguments] == [
        ("data", "Tensor", "The input.")
    ]
    assert tvm.get_global_func("tvm.relay.type_relation.Broadcast") is not None


def test_types_within_types_are_looked_through_once():
    """Thousands of tuples within each other take milliseconds; each is part of the type of all around it."""
    x = relay.var("x", shape=(2,))
    value = x
    for _ in range(3000):
        value = relay.Tuple([value])
    started = time.process_time()
    typed = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x], value)))
    assert time.process_time() - started < 5
    kind = typed["main"].checked_type.ret_type
    for _ in range(3000):
        (kind,) = kind.fields
    assert kind == relay.TensorType((2,))
