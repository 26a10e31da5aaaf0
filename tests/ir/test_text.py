"""Text of expressions."""

import pytest

from tilewright.ir import operators
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import (
    EQ,
    Add,
    And,
    Any,
    Broadcast,
    Call,
    CommReducer,
    Div,
    FloatImm,
    IntImm,
    IterVar,
    Let,
    Load,
    Mod,
    Not,
    Or,
    PrimExpr,
    Ramp,
    Reduce,
    Select,
    Shuffle,
    StringImm,
    Sub,
    Var,
)
from tilewright.ir.text import ExprPrinter

x, y, z = Var("x"), Var("y"), Var("z")
f = Var("f", "float32")
A = decl_buffer((16, 16), "float32", name="A")
S = decl_buffer((), "float32", name="S")


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (lambda: (x + 1) * 2, "(x + 1) * 2"),
        (lambda: x + y * 2, "x + y * 2"),
        (lambda: x - (y - z), "x - (y - z)"),
        (lambda: x - y - z, "x - y - z"),
        (lambda: Add(x, Add(y, z)), "x + (y + z)"),
        (lambda: x // y % z, "x // y % z"),
        (lambda: x // (y % z), "x // (y % z)"),
        (lambda: x + -1, "x + -1"),
        (lambda: EQ(x < y, y < z), "(x < y) == (y < z)"),
        (lambda: And(x < y, Or(y < z, x < z)), "x < y and (y < z or x < z)"),
        (lambda: Or(And(x < y, y < z), x < z), "x < y and y < z or x < z"),
        (lambda: Not(And(x < y, y < z)), "not (x < y and y < z)"),
        (lambda: And(Not(x < y), y < z), "not x < y and y < z"),
        (lambda: f / 2.0, "f / T.float32(2.0)"),
        (lambda: Div(x, y), "T.truncdiv(x, y)"),
        (lambda: Mod(x, y), "T.truncmod(x, y)"),
        (lambda: operators.minimum(x, y) + 1, "T.min(x, y) + 1"),
        (lambda: x.astype("int64") + 1, 'T.cast(x, "int64") + T.int64(1)'),
        (lambda: operators.const(True), "True"),
        (lambda: IntImm("uint8", 200), "T.uint8(200)"),
        (lambda: FloatImm("float64", 0.1), "T.float64(0.1)"),
        (lambda: FloatImm("float32", float("-inf")), 'T.float32("-inf")'),
        (lambda: FloatImm("float32", float("nan")), 'T.float32("nan")'),
        (lambda: StringImm('say "hi"'), r'"say \"hi\""'),
        (lambda: A[x, y + 1], "A[x, y + 1]"),
        (lambda: S[()], "S[()]"),
        (lambda: Load("float32", A.data, x), 'T.load("float32", A, x)'),
        (lambda: Load("float32", A.data, x, x < y), 'T.load("float32", A, x, x < y)'),
        (lambda: Ramp(x, 1, 4), "T.ramp(x, 1, 4)"),
        (lambda: Broadcast(x, 4), "T.broadcast(x, 4)"),
        (lambda: Shuffle([x, y], [1, 0]), "T.shuffle([x, y], [1, 0])"),
        (lambda: Select(x < y, x, y), "T.Select(x < y, x, y)"),
        (lambda: Let(z, x, z + 1), "T.let(z, x, z + 1)"),
        (lambda: operators.call("exp", "float32", [f]), 'T.exp(f, dtype="float32")'),
        (lambda: operators.call("type_annotation", "float32", []), 'T.type_annotation(dtype="float32")'),
        (lambda: IntImm("handle", 0), 'T.IntImm("handle", 0)'),
        (Any, "T.Any()"),
    ],
)
def test_script_syntax(expr: object, text: str) -> None:
    """Expressions print as Python would write them, with parentheses only where they are needed."""
    assert ExprPrinter().text(expr()) == text  # type: ignore[operator]


def test_repr_is_shorter() -> None:
    """``repr`` leaves out types that can be guessed and indexes flat memory with brackets."""
    assert repr(operators.call("exp", "float32", [f]) * 2.0) == "T.exp(f) * 2.0"
    assert repr(Load("float32", A.data, x + 1)) == "A[x + 1]"
    assert repr(Any()) == "?"
    assert (
        repr(operators.call("popcount", "int32", [x.astype("int64")]))
        == 'T.popcount(T.cast(x, "int64"), dtype="int32")'
    )


def test_reduce() -> None:
    """A reduction shows its combiner, sources, axes and condition."""
    axis = IterVar((0, 10), "k", IterVar.CommReduce)
    a, b = Var("a", "float32"), Var("b", "float32")
    combiner = CommReducer([a], [b], [a + b], [operators.const(0.0)])
    made = Reduce(combiner, [A[axis.var, 0]], [axis], x < y, 0)
    assert (
        repr(made)
        == "T.Reduce(T.comm_reducer(lambda a, b: a + b, [0.0]), [A[k, 0]], [T.iter_var(k, 0, 10)], x < y, 0)"
    )


def test_prefix_and_names_can_change() -> None:
    """A derived printer chooses the names; the prefix may be another or none."""

    class Numbered(ExprPrinter):
        def var_name(self, var: Var) -> str:
            return f"v_{var.name}"

    assert Numbered("tir").text(operators.minimum(x, y)) == "tir.min(v_x, v_y)"
    assert ExprPrinter("").text(operators.minimum(x, y)) == "min(x, y)"


def chain(length: int) -> PrimExpr:
    """x + y + y + ..."""
    made: PrimExpr = x
    for _ in range(length):
        made = made + y
    return made


def test_deep_expression_prints_whole() -> None:
    """The printer goes 100,000 levels deep, and the text has every operand once."""
    text = ExprPrinter().text(chain(100_000))
    assert len(text) == len("x") + 100_000 * len(" + y")


def test_repr_of_deep_and_large_expressions_is_cut() -> None:
    """``repr`` of what is too deep, too wide, or a graph of exponential size is short and says so."""
    deep = repr(chain(100_000))
    assert deep.startswith("… + ") and deep.endswith(" + y") and len(deep) < 1000
    doubled: PrimExpr = x
    for _ in range(90):
        doubled = Sub(doubled, doubled)
    assert "…" in repr(doubled) and len(repr(doubled)) < 20_000
    wide = repr(Call("handle", "tir.tvm_tuple", [x] * 100_000))
    assert "…" in wide and len(wide) < 20_000
