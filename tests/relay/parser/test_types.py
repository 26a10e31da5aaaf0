"""Types in the text form, as they are read."""

import pytest

from tilewright import relay, tir
from tilewright.ir import assert_structural_equal
from tilewright.parser import parse_expr
from tilewright.relay.parser import TextFormError


def read(text: str) -> relay.Type:
    return parse_expr(f"fn (%x: {text}) {{ 1 }}").params[0].type_annotation


INT = relay.scalar_type("int32")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int32", INT),
        ("bool", relay.scalar_type("bool")),
        ("Tensor[(), float32]", relay.scalar_type("float32")),
        ("Tensor[(1), float32]", relay.TensorType((1,))),
        ("Tensor[(1,), float32]", relay.TensorType((1,))),
        ("Tensor[(?, 1), float16]", relay.TensorType((relay.Any(), 1), "float16")),
        ("()", relay.TupleType([])),
        ("(int32)", INT),
        ("(int32,)", relay.TupleType([INT])),
        ("(int32, (int32,))", relay.TupleType([INT, relay.TupleType([INT])])),
        ("ref(int32)", relay.RefType(INT)),
        ("fn () -> int32", relay.FuncType([], INT)),
        ("fn (int32, int32) -> ()", relay.FuncType([INT, INT], relay.TupleType([]))),
        ("fn (int32) -> fn (int32) -> int32", relay.FuncType([INT], relay.FuncType([INT], INT))),
    ],
)
def test_types(text: str, expected: relay.Type) -> None:
    """Each kind of type is read."""
    assert read(text) == expected


def test_generic_function_types() -> None:
    """Type parameters are bound within the type; a kind other than that of types is named."""
    a, n = relay.TypeVar("A"), relay.ShapeVar("N")
    expected = relay.FuncType([a], a, [a, n])
    assert_structural_equal(read("fn [A, N: ShapeVar](A) -> A"), expected)
    assert read("_").kind == relay.TypeKind.Type


def test_symbolic_dimensions() -> None:
    """One name is one variable in a text; expressions of variables, and the types of both, are kept."""
    n, m = tir.Var("n", "int32"), tir.SizeVar("m", "int64")
    shape = (n, n * 2 + 1, m, tir.floordiv(n, 2), tir.max(n, 4), tir.IntImm("int64", 3))
    x, y = relay.var("x", shape=shape), relay.var("y", shape=(n,))
    function = relay.Function([x, y], relay.Tuple([x, y]))
    text = function.astext()
    assert (
        "%x: Tensor[(n, n * 2 + 1, m: size_int64, floordiv(n, 2), max(n, 4), 3i64), float32], %y: Tensor[(n), float32]"
        in text
    )
    found = parse_expr(text)
    assert_structural_equal(found, function, map_free_vars=True)
    assert found.params[0].type_annotation.shape[0] is found.params[1].type_annotation.shape[0]


def test_dimensions_without_words() -> None:
    """A dimension that the text form cannot say stands in the metadata."""
    n = tir.Var("n", "int32")
    function = relay.Function([x := relay.var("x", shape=(tir.truncdiv(n, 2),))], x)
    assert "Tensor[(meta[ir.Div][0]), float32]" in function.astext()
    assert_structural_equal(parse_expr(function.astext()), function, map_free_vars=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Foo", "the type 'Foo' is not defined"),
        ("Tensor[2, float32]", "expected the shape in parentheses, found '2'"),
        ("Tensor[(2), floaty]", "this is not an element type"),
        ("Tensor[(1.5), float32]", "a dimension is an integer"),
        ("Tensor[(n: float32), float32]", "'float32' is not a type of dimensions"),
        ("Tensor[(floordiv(n)), float32]", "floordiv takes two dimensions, not 1"),
        ("Tensor[(floordiv(1, 0)), float32]", "this is not a dimension"),
        ("fn [A: Odd](A) -> A", "there is no type kind 'Odd'"),
        ("fn (int32)", "expected '->'"),
        ("3", "expected a type, found '3'"),
    ],
)
def test_errors(text: str, message: str) -> None:
    """What is wrong in a type is said."""
    with pytest.raises(TextFormError) as caught:
        read(text)
    assert message in str(caught.value)
