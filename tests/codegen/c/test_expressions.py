"""The text of expressions."""

import pytest

from tilewright import tir
from tilewright.codegen.c.expressions import ExpressionPrinter, bare, string_literal
from tilewright.support.errors import CodegenError


def text_of(expr, *variables):
    printer = ExpressionPrinter()
    for variable in variables:
        printer.names.define(variable)
    return printer.scalar(expr)


X = tir.Var("x")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (tir.const(-5), "(-5)"),
        (tir.const(-(2**31), "int32"), "(-2147483647 - 1)"),
        (tir.const(-(2**63), "int64"), "(-9223372036854775807LL - 1)"),
        (tir.const(2**64 - 1, "uint64"), "18446744073709551615ULL"),
        (tir.const(7, "int8"), "((int8_t)7)"),
        (tir.const(True), "1"),
        (tir.const(0.1, "float32"), "0.1f"),
        (tir.const(2.0, "float32"), "2.0f"),
        (tir.const(-0.0, "float32"), "(-0.0f)"),
        (tir.const(1e30, "float32"), "1e+30f"),
        (tir.const(0.1, "float64"), "0.1"),
        (tir.const(float("inf"), "float32"), "((float)INFINITY)"),
        (X * 2 + 1, "((x * 2) + 1)"),
        (tir.Cast("bool", X), "(x != 0)"),
        (tir.Cast("float16", X), "((_Float16)x)"),
    ],
)
def test_scalars(expr, text):
    """Constants keep their value and type; operators stand in parentheses."""
    assert text_of(expr, X) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(a + b)", "a + b"),
        ("(a) + (b)", "(a) + (b)"),
        ("a", "a"),
        ("((a) + b)", "(a) + b"),
        ('(f(")"))', '(f(")"))'),
    ],
)
def test_bare(text, expected):
    """One pair of parentheses around all of it goes, and no other."""
    assert bare(text) == expected


def test_strings():
    """Quotes, backslashes, trigraphs and bytes outside of ASCII are escaped."""
    assert string_literal('a"b\\c??/\n') == '"a\\"b\\\\c\\?\\?/\\012"'
    assert string_literal("é") == '"\\303\\251"'


def test_guarded_values_stay_inside():
    """Below a condition nothing is moved ahead of it."""
    printer, v = ExpressionPrinter(), tir.Var("v")
    printer.names.define(X)
    expr = tir.if_then_else(X > 0, tir.Let(v, tir.truncdiv(10, X), v + v), 0)
    assert printer.scalar(expr) == "((x > 0) ? ((tw_div_int32(10, x)) + (tw_div_int32(10, x))) : 0)"
    assert printer.lines == []


def test_vectors_need_a_lane():
    """A vector where a scalar must stand is an error that shows it."""
    with pytest.raises(CodegenError, match="C needs a scalar here, not int32x4"):
        text_of(tir.Ramp(0, 1, 4))
