"""The prelude: what its functions compute, and how they are found."""

from typing import Any

import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.relay.interpreter import ConstructorValue, Interpreter
from tilewright.relay.parser import parse_expression
from tilewright.relay.prelude import FUNCTIONS, Prelude

PRELUDE = Prelude()


def plain(value: Any) -> Any:
    """A value as Python knows it: lists, pairs, numbers; other constructors by their name."""
    if isinstance(value, ConstructorValue):
        name = value.constructor.name_hint
        if name == "Nil":
            return []
        if name == "Cons":
            return [plain(value[0]), *plain(value[1])]
        return (name, *[plain(field) for field in value.fields])
    if isinstance(value, (tuple, list)):
        return tuple(plain(field) for field in value)
    return value.item()


def evaluate(text: str) -> Any:
    """The value of an expression that may use the prelude, after its types were checked."""
    module = tvm.IRModule(PRELUDE.mod.functions, PRELUDE.mod.type_definitions)
    module["main"] = relay.Function([], parse_expression(text, init_module=module))
    module = relay.transform.InferType()(module)
    return plain(Interpreter(module).run(module["main"], []))


def items(*values: int) -> str:
    """A list of integers, as text."""
    text = "Nil"
    for value in reversed(values):
        text = f"Cons({value}, {text})"
    return text


ADD = "fn (%a: int32, %b: int32) -> int32 { %a + %b }"
SUBTRACT = "fn (%a: int32, %b: int32) -> int32 { %a - %b }"
DOUBLE = "fn (%a: int32) -> int32 { %a * 2 }"
COUNTDOWN = """fn (%n: int32) -> Option[(int32, int32)] {
  if (%n == 0) { None } else { Some((%n - 1, %n)) }
}"""
STEP = "fn (%s: int32, %x: int32) -> (int32, int32) { (%s + %x, %s * 10 + %x) }"
TREE = "Rose(1, Cons(Rose(2, Nil), Cons(Rose(3, Cons(Rose(4, Nil), Nil)), Nil)))"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("@id(5)", 5),
        (f"@compose({DOUBLE}, fn (%a: int32) -> int32 {{ %a + 1 }})(3)", 8),
        (f"@flip({SUBTRACT})(1, 5)", 4),
        (f"@iterate({DOUBLE}, 4)(3)", 48),
        (f"@iterate({DOUBLE}, 0)(3)", 3),
        (f"@hd({items(7, 8)})", 7),
        (f"@tl({items(7, 8, 9)})", [8, 9]),
        (f"@nth({items(7, 8, 9)}, 2)", 9),
        (f"@update({items(7, 8, 9)}, 1, 0)", [7, 0, 9]),
        (f"@length({items(4, 4, 4)})", 3),
        (f"@map({DOUBLE}, {items(1, 2, 3)})", [2, 4, 6]),
        (f"@filter(fn (%a: int32) -> bool {{ %a > 1 }}, {items(1, 2, 3, 0)})", [2, 3]),
        (f"@concat({items(1, 2)}, {items(3)})", [1, 2, 3]),
        (f"@zip({items(1, 2, 3)}, {items(4, 5)})", [(1, 4), (2, 5)]),
        (f"@rev({items(1, 2, 3)})", [3, 2, 1]),
        (f"@foldl({SUBTRACT}, 10, {items(1, 2, 3)})", 4),
        (f"@foldr({SUBTRACT}, 10, {items(1, 2, 3)})", -8),
        (f"@foldr1({SUBTRACT}, {items(1, 2, 3)})", 2),
        (f"@foldr1({ADD}, {items(5)})", 5),
        (f"@sum({items(1, 2, 3)})", 6),
        (f"@map_accuml({STEP}, 0, {items(1, 2, 3)})", (6, [1, 12, 33])),
        (f"@map_accumr({STEP}, 0, {items(1, 2, 3)})", (6, [51, 32, 3])),
        (f"@unfoldr({COUNTDOWN}, 4)", [4, 3, 2, 1]),
        (f"@unfoldl({COUNTDOWN}, 4)", [1, 2, 3, 4]),
        (f"@size({TREE})", 4),
        (
            f"@tmap({DOUBLE}, {TREE})",
            ("Rose", 2, [("Rose", 4, []), ("Rose", 6, [("Rose", 8, [])])]),
        ),
        (f"@foldr(Cons, Nil, {items(1, 2)})", [1, 2]),
    ],
)
def test_functions(text: str, expected: Any) -> None:
    """Each function computes what its name says."""
    assert evaluate(text) == expected


def test_functions_are_attributes() -> None:
    """A function of the prelude is an attribute: the variable of the module."""
    for name in FUNCTIONS:
        assert getattr(PRELUDE, name) is PRELUDE.mod.get_global_var(name)


def test_prelude_in_a_module_of_the_users() -> None:
    """The prelude is added to a module once; functions of the module stay."""
    module = tvm.IRModule({"mine": relay.Function([], relay.const(1))})
    first = Prelude(module)
    assert first.mod is module and "mine" in module and len(module.get_type("List")) == 3
    assert Prelude(module).map is first.map


def test_types_and_constructors() -> None:
    """A type comes with its constructors, which build values in Python."""
    list_type, cons, nil = PRELUDE.mod.get_type("List")
    expr = cons(relay.const(1), nil())
    module = tvm.IRModule(PRELUDE.mod.functions, PRELUDE.mod.type_definitions)
    module["main"] = relay.Function([], PRELUDE.length(expr))
    typed = relay.transform.InferType()(module)
    assert typed["main"].body.args[0].checked_type == list_type(relay.scalar_type("int32"))


def test_tensor_arrays_are_defined_when_asked_for() -> None:
    """Names of tensor arrays of an element type are found, and nothing is defined for other types."""
    prelude = Prelude()
    assert prelude.get_name("tensor_t", "float32") == "tensor_float32_t"
    assert prelude.get_global_var("tensor_array_read", "int8").name_hint == "tensor_array_read_int8"
    assert prelude.get_type("tensor_t", "int8").name_hint == "tensor_int8_t"
    assert prelude.get_tensor_ctor("tensor2", "int8").name_hint == "tensor2_int8"
    assert prelude.get_ctor("tensor_int8_t", "tensor_nil", "int8").inputs == ()
    assert "tensor_array_read_float32" not in prelude.mod
    with pytest.raises(tvm.TVMError, match="has no constructor tensor9_int8"):
        prelude.get_tensor_ctor("tensor9", "int8")


def test_lazy_gradients() -> None:
    """Cells of gradients: zero and one are made where their elements are asked for."""
    module = tvm.IRModule()
    module.import_from_std("gradient.rly")
    zero, one, raw = "Zero(fn () { 0f })", "One(fn () { 1f })", "Raw(5f)"
    add, multiply = ("fn (%a: float32, %b: float32) { %a " + symbol + " %b }" for symbol in "+*")
    cases = {
        f"@MultiplyGradCell({multiply}, {zero}, {raw})": 0.0,
        f"@MultiplyGradCell({multiply}, {raw}, {one})": 5.0,
        f"@MultiplyGradCell({multiply}, {raw}, {raw})": 25.0,
        f"@AddGradCell({add}, {zero}, {raw})": 5.0,
        f"@AddGradCell({add}, {one}, {raw})": 6.0,
    }
    for text, expected in cases.items():
        whole = module.copy()
        whole["main"] = relay.Function([], parse_expression(f"@FromGradCell({text})", init_module=whole))
        typed = relay.transform.InferType()(whole)
        assert Interpreter(typed).run(typed["main"], []).item() == expected, text
