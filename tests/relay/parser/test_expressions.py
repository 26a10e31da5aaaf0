"""Expressions in the text form, as they are read."""

from typing import Any

import numpy as np
import pytest

import tilewright as tvm
from tilewright import relay
from tilewright.ir import assert_structural_equal
from tilewright.parser import parse_expr
from tilewright.relay.parser import TextFormError, parse_expression, parse_module


def same(text: str, expected: Any) -> None:
    """The text is this expression, up to the names of variables."""
    assert_structural_equal(parse_expr(text), expected, map_free_vars=True)


def scalar(text: str) -> np.ndarray:
    found = parse_expr(text)
    assert isinstance(found, relay.Constant)
    return found.data.numpy()


@pytest.mark.parametrize(
    ("text", "value", "dtype"),
    [
        ("1", 1, "int32"),
        ("-05", -5, "int32"),
        ("--10", 10, "int32"),
        ("---10", -10, "int32"),
        ("-2147483648", -(2**31), "int32"),
        ("3i64", 3, "int64"),
        ("-128i8", -128, "int8"),
        ("255u8", 255, "uint8"),
        ("1f", 1.0, "float32"),
        ("1.5", 1.5, "float32"),
        ("-1E-1f", -0.1, "float32"),
        ("1e+1f", 10.0, "float32"),
        ("0.25f16", 0.25, "float16"),
        ("0.1f64", 0.1, "float64"),
        ("-inff", -np.inf, "float32"),
        ("True", True, "bool"),
        ("False", False, "bool"),
    ],
)
def test_literals(text: str, value: float, dtype: str) -> None:
    """A number has the type that its suffix names."""
    found = scalar(text)
    assert found.shape == () and found == np.array(value, dtype) and str(found.dtype) == dtype


def test_not_a_number() -> None:
    """``nanf`` is a float that is not a number."""
    assert np.isnan(scalar("nanf")) and scalar("nanf64").dtype == "float64"


@pytest.mark.parametrize(
    ("text", "grouped"),
    [
        ("1 + 2 * 3", "1 + (2 * 3)"),
        ("1 * 2 + 3 < 4 == 5 > 6", "(((1 * 2) + 3) < 4) == (5 > 6)"),
        ("1 - 2 - 3", "(1 - 2) - 3"),
        ("8 / 4 / 2 >= 1 != False", "(((8 / 4) / 2) >= 1) != False"),
        ("1 <= -%x * 2", "1 <= ((-%x) * 2)"),
    ],
)
def test_infix_operators(text: str, grouped: str) -> None:
    """Products bind tighter than sums, sums than comparisons; equal ones group to the left."""
    both = [parse_expr(f"free_var %x: int32; {one}") for one in (text, grouped)]
    assert_structural_equal(*both, map_free_vars=True)


def test_infix_operators_are_calls() -> None:
    """Each symbol is a call of an operator."""
    names = {
        "+": "add",
        "-": "subtract",
        "*": "multiply",
        "/": "divide",
        "<": "less",
        ">": "greater",
        "<=": "less_equal",
        ">=": "greater_equal",
        "==": "equal",
        "!=": "not_equal",
    }
    for symbol, name in names.items():
        same(f"1 {symbol} 2", relay.Call(relay.op.get(name), [relay.const(1), relay.const(2)]))
    same("let %x = 1; -%x", relay.Let(x := relay.var("x"), relay.const(1), relay.negative(x)))


def test_comments() -> None:
    """Comments end with their line, or with their closing mark; they may hold comments."""
    same("/* a /* nested */ comment */ () // and one to the end of the line", relay.Tuple([]))


def test_let_and_sequences() -> None:
    """``let`` binds for the rest of the block; an expression before a semicolon is computed and forgotten."""
    x, ignored = relay.var("x"), relay.var("_")
    same("let %x = 1; %x + %x", relay.Let(x, relay.const(1), x + x))
    same("(); 2", relay.Let(ignored, relay.Tuple([]), relay.const(2)))
    found = parse_expr("let %x: _ = 1; ()")
    assert isinstance(found.var.type_annotation, relay.IncompleteType) and found.var.name_hint == "x"


def test_shadowing() -> None:
    """The value of a variable may use an older one of the same name; a function refers to itself."""
    found = parse_expr("let %x = 1; let %x = %x + 1; %x")
    assert found.body.value.args[0] is found.var and found.body.body is found.body.var
    loop = parse_expr("let %f = fn (%n: int32) -> int32 { %f(%n) }; %f")
    assert loop.value.body.op is loop.var


def test_graph_definitions_are_shared_nodes() -> None:
    """A numbered name stands for one node, however often it is used, also outside the block that defines it."""
    found = parse_expr("%0 = (); %1 = 1; (%0, %0, %1)")
    assert found.fields[0] is found.fields[1]
    branches = parse_expr("if (True) { %0 = exp(1f); %0 } else { %0 }")
    assert branches.true_branch is branches.false_branch
    nearest = parse_expr("%0 = 1; (fn () { %0 = 2; %0 }, %0)")
    assert nearest.fields[0].body.data.numpy() == 2 and nearest.fields[1].data.numpy() == 1


def test_tuples_and_fields() -> None:
    """A comma makes a tuple; a number behind a dot is a field of one."""
    one, two = relay.const(1), relay.const(2)
    same("()", relay.Tuple([]))
    same("(1)", one)
    same("(1,)", relay.Tuple([one]))
    same("(1, 2).1", relay.TupleGetItem(relay.Tuple([one, two]), 1))
    same(
        "((1, 2), 2).0.1",
        relay.TupleGetItem(relay.TupleGetItem(relay.Tuple([relay.Tuple([one, two]), two]), 0), 1),
    )


def test_functions_and_calls() -> None:
    """Functions are values: called at once, or one argument list after the other."""
    x, y = relay.var("x"), relay.var("y", "int32")
    same("fn (%x) { %x }(0)", relay.Call(relay.Function([x], x), [relay.const(0)]))
    curried = relay.Function([x], relay.Function([y], x * y, relay.scalar_type("int32")))
    same(
        "fn (%x) { fn (%y: int32) -> int32 { %x * %y } }(2)(3)",
        relay.Call(relay.Call(curried, [relay.const(2)]), [relay.const(3)]),
    )
    a = relay.TypeVar("A")
    z = relay.var("z", a)
    same("fn [A](%z: A) -> A { %z }", relay.Function([z], z, a, [a]))


def test_function_attributes() -> None:
    """Attributes stand among the parameters; their names may have dots, or be strings."""
    found = parse_expr(
        'fn (%x, Primitive=1, relay.reshape_only=1, "odd name"=[1, [2f, None]], on=True) { %x }'
    )
    assert dict(found.attrs.items()) == {
        "Primitive": 1,
        "relay.reshape_only": 1,
        "odd name": (1, (2.0, None)),
        "on": True,
    }


def test_operator_attributes() -> None:
    """Attributes by name, of every kind; those left out are as the operator has them by default."""
    x = relay.var("x", shape=(2, 3))
    same("free_var %x: Tensor[(2, 3), float32]; sum(%x, axis=[-1], keepdims=True)", relay.sum(x, [-1], True))
    same("free_var %x: Tensor[(2, 3), float32]; sum(%x)", relay.sum(x))
    same('free_var %x: Tensor[(2, 3), float32]; cast(%x, dtype="int8")', relay.cast(x, "int8"))
    same(
        "free_var %x: Tensor[(2, 3), float32]; clip(%x, a_min=-inff, a_max=1.5f)", relay.clip(x, -np.inf, 1.5)
    )


def test_attributes_of_other_classes() -> None:
    """Attributes that are not those of the called operator name their class."""
    x = relay.var("x")
    for attrs in (tvm.ir.make_node("DictAttrs", level=1), relay.sum(x, [1]).attrs):
        call = relay.Call(relay.GlobalVar("f"), [x], attrs)
        assert "attrs_type_key=" in str(call)
        same(str(call), call)
    with pytest.raises(TextFormError, match="there is no class of attributes 'Odd'"):
        parse_expr('@f(1, attrs_type_key="Odd")')


def test_branches_and_references() -> None:
    """``if`` has two blocks; references are made, read and written."""
    c, r = relay.var("c", "bool"), relay.var("r")
    same("free_var %c: bool; if (%c) { 1 } else { 2 }", relay.If(c, relay.const(1), relay.const(2)))
    same("let %r = ref(1); ref_read(%r)", relay.Let(r, relay.RefCreate(relay.const(1)), relay.RefRead(r)))
    same(
        "let %r = ref(1); ref_write(%r, 2)",
        relay.Let(r, relay.RefCreate(relay.const(1)), relay.RefWrite(r, relay.const(2))),
    )


def test_match() -> None:
    """Clauses have patterns of every kind; ``match?`` need not have a clause for every value."""
    module = tvm.IRModule()
    module.import_from_std("prelude.rly")
    text = """
        fn (%xs: List[(int32, bool)]) {
          match? (%xs) {
            Cons((%n: int32, _), Nil) => { %n },
            Cons(_, %rest) => 2,
          }
        }
    """
    found = parse_expression(text, init_module=module).body
    assert not found.complete and len(found.clauses) == 2
    first = found.clauses[0].lhs
    assert first.constructor is module.get_type("List")[1]
    assert isinstance(first.patterns[0], relay.PatternTuple)
    assert isinstance(first.patterns[0].patterns[1], relay.PatternWildcard)
    assert found.clauses[0].rhs is first.patterns[0].patterns[0].var
    assert parse_expression("match (1) { _ => 2 }").complete


def test_constructors() -> None:
    """A constructor without arguments is called without parentheses; another one is also a value."""
    module = tvm.IRModule()
    module.import_from_std("prelude.rly")
    _, cons, nil = module.get_type("List")
    found = parse_expression("(Cons(1, Nil), Cons, Nil[int32], Cons[int32](1, Nil()))", init_module=module)
    assert_structural_equal(found.fields[0], cons(relay.const(1), nil()))
    assert found.fields[1] is cons
    assert found.fields[2].type_args == (relay.scalar_type("int32"),) and found.fields[2].op is nil
    assert found.fields[3].type_args == (relay.scalar_type("int32"),)


def test_operators_and_globals_are_values() -> None:
    """An operator's name and a global name are expressions of their own."""
    assert parse_expr("exp") is relay.op.get("exp")
    assert parse_expr("@f").name_hint == "f"


def test_meta_references() -> None:
    """``meta[class][number]`` is a value of the table that is passed."""
    constant = relay.const(np.ones((2, 2), "float32"))
    table = {"relay.Constant": [constant]}
    found = parse_expression("meta[relay.Constant][0]", init_meta_table=table)
    assert_structural_equal(found, constant)


def test_names_in_quotes() -> None:
    """A name that is not a word stands in quotes, and is kept."""
    found = parse_expr(r'fn (%"a/b:0", %"q\"uote", %layer1.0.weight) { (%"a/b:0", %layer1.0.weight.1) }')
    assert [parameter.name_hint for parameter in found.params] == ["a/b:0", 'q"uote', "layer1.0.weight"]
    assert isinstance(found.body.fields[1], relay.TupleGetItem)


def test_every_node_has_a_place() -> None:
    """Line and column of a node are those of its first character, in the source that is named."""
    text = "fn (%x) {\n  let %y = exp(%x);\n  (%y + 1f).0\n}"
    found = parse_expression(text, "model.rly")
    let = found.body
    places = {
        "function": (found.span, 1, 1),
        "parameter": (found.params[0].span, 1, 5),
        "let": (let.span, 2, 3),
        "variable": (let.var.span, 2, 7),
        "call": (let.value.span, 2, 12),
        "field": (let.body.span, 3, 3),
        "sum": (let.body.tuple_value.span, 3, 4),
        "constant": (let.body.tuple_value.args[1].span, 3, 9),
    }
    for what, (span, line, column) in places.items():
        assert (span.line, span.column) == (line, column), what
        assert span.source_name.name == "model.rly"
    assert (let.value.span.end_line, let.value.span.end_column) == (2, 19)


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("exq(1)", "there is no operator or constructor 'exq'; did you mean exp?", 1),
        ("1 + %y", "the variable %y is not defined here", 5),
        ("let %long = 1; %lng", "did you mean %long?", 16),
        ("%0", "%0 is not defined before this use", 1),
        ("exp()", "exp takes 1 argument, not 0", 1),
        ("exp(1f, axis=1)", "exp has no attribute 'axis'", 1),
        ("sum(1, axos=1)", "sum has no attribute 'axos'; it has axis, exclude, keepdims", 1),
        ("sum(1, axis=1, axis=2)", "the attribute axis occurs twice", 16),
        ("3000000000", "3000000000 does not fit into int32; add i64", 1),
        ("300u8", "300 does not fit into uint8", 1),
        ("1e99f", "1e99 does not fit into float32", 1),
        ("1f8", "there are no numbers of type float8", 1),
        ("1.5i64", "has no fraction", 1),
        ("fn (%x, %x) { 1 }", "the variable %x occurs twice", 9),
        ("if (True) { let %x = (); () } else { %x }", "%x is not defined here", 38),
        ("let @x = 1; ()", "expected a variable such as %x, found '@x'", 5),
        ("let %x = 1 ()", "expected ';' after the value of a variable, found '('", 12),
        ("(1, 2", "expected ',' or ')', found end of text", 6),
        ("1 2", "expected the end of the text, found '2'", 3),
        ("ref_write(1)", "ref_write takes 2 arguments, not 1", 1),
        ("match (1) { Foo => 1 }", "there is no constructor 'Foo'", 13),
        ("meta[relay.Constant][0]", "the meta data has 0 values of class relay.Constant", 1),
        ("fn (%x: Foo) { 1 }", "the type 'Foo' is not defined", 9),
        ("/* open", "the comment does not end", 1),
        ('%"open', "a name is expected after %", 1),
        ("1 $ 2", "unexpected character '$'", 3),
        ("", "expected an expression, found end of text", 1),
    ],
)
def test_errors_name_the_place(text: str, message: str, column: int) -> None:
    """What is wrong is said, with the line and a caret below the first wrong character."""
    with pytest.raises(TextFormError) as caught:
        parse_expr(text)
    assert message in str(caught.value) and caught.value.span.column == column
    if text:
        lines = str(caught.value).splitlines()
        assert lines[1] == f"  --> from_string:1:{column}"
        assert lines[-2].endswith(text) and lines[-1].index("^") == column + 2


def test_constructor_arity() -> None:
    """A call or pattern with too few or too many arguments is an error that names the constructor."""
    module = tvm.IRModule()
    module.import_from_std("prelude.rly")
    with pytest.raises(TextFormError, match="constructor Cons takes 2 arguments, not 1"):
        parse_expression("Cons(1)", init_module=module)
    with pytest.raises(TextFormError, match="constructor Cons takes 2 arguments, the pattern has 1"):
        parse_expression("match (Nil) { Cons(%x) => %x }", init_module=module)


def test_errors_are_shown_by_the_users_renderer() -> None:
    """Errors go through the diagnostics of the package, so a renderer of the user's sees them."""
    seen = []
    tvm.ir.diagnostics.override_renderer(lambda context: seen.extend(context.diagnostics))
    try:
        with pytest.raises(tvm.error.DiagnosticError):
            parse_module("def @main() { %x }")
    finally:
        tvm.ir.diagnostics.override_renderer(None)
    assert [diagnostic.span.column for diagnostic in seen] == [15]


def test_deep_nesting() -> None:
    """Parentheses 20,000 deep are read; a text that is nested deeper than can be read says so."""
    assert scalar("(" * 20_000 + "7" + ")" * 20_000) == 7
    with pytest.raises(TextFormError, match="nested too deeply"):
        parse_expr("(" * 60_000)
