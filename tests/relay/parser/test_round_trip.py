"""Printing and reading are inverse: the same program, names and sharing, for programs made at random."""

import io
from contextlib import redirect_stderr

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tilewright as tvm
from tilewright import relay
from tilewright.ir import assert_structural_equal
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.literals import MetaTable
from tilewright.relay.parser import TextFormError, parse_expression, parse_module

LIBRARY = tvm.IRModule()
LIBRARY.import_from_std("prelude.rly")
_, CONS, NIL = LIBRARY.get_type("List")

NAMES = st.sampled_from(["x", "y", "x", "v1", "_", "a.b", "w.0", "1", "conv/bias:0", 'q"', "é", "let"])
SCALARS = st.one_of(
    st.integers(-(2**31), 2**31 - 1).map(lambda value: relay.const(value, "int32")),
    st.integers(-(2**63), 2**63 - 1).map(lambda value: relay.const(value, "int64")),
    st.integers(0, 255).map(lambda value: relay.const(value, "uint8")),
    st.floats(width=32).map(lambda value: relay.const(value, "float32")),
    st.floats(width=16).map(lambda value: relay.const(value, "float16")),
    st.floats().map(lambda value: relay.const(value, "float64")),
    st.booleans().map(lambda value: relay.const(value, "bool")),
    st.lists(st.integers(-9, 9), min_size=1, max_size=3).map(lambda value: relay.const(value, "int8")),
)
TYPES = st.sampled_from(
    [
        None,
        relay.IncompleteType(),
        relay.TensorType((2, relay.Any())),
        relay.TupleType([relay.scalar_type("int32")]),
        relay.FuncType([], relay.RefType(relay.scalar_type("bool"))),
        LIBRARY.get_global_type_var("List")(relay.scalar_type("float32")),
    ]
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=4)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple), st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


class Maker:
    """Makes an expression from choices; ``pool`` holds what can be used at the place, so that nodes are shared."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def variable(self) -> relay.Var:
        return relay.Var(self.draw(NAMES), self.draw(TYPES))

    def expression(self, pool: list, size: int) -> relay.Expr:
        made = self.new(pool, size) if size > 0 else self.leaf(pool)
        pool.append(made)
        return made

    def leaf(self, pool: list) -> relay.Expr:
        if pool and self.draw(st.booleans()):
            return self.draw(st.sampled_from(pool))
        return self.draw(SCALARS)

    def parts(self, pool: list, size: int, count: int) -> list:
        return [self.expression(pool, size // 2 - 1 if count > 1 else size - 1) for _ in range(count)]

    def new(self, pool: list, size: int) -> relay.Expr:
        kind = self.draw(
            st.sampled_from(["call", "tuple", "field", "let", "if", "fn", "match", "ref", "leaf", "cons"])
        )
        if kind == "call":
            return relay.add(*self.parts(pool, size, 2))
        if kind == "tuple":
            return relay.Tuple(self.parts(pool, size, self.draw(st.integers(0, 3))))
        if kind == "field":
            return relay.TupleGetItem(self.expression(pool, size - 1), self.draw(st.integers(0, 12)))
        if kind == "let":
            value = self.expression(pool, size // 2)
            variable = self.variable()
            return relay.Let(variable, value, self.expression([*pool, variable], size - 1))
        if kind == "if":
            condition = self.expression(pool, size // 2)
            return relay.If(condition, *[self.expression([*pool], size - 2) for _ in range(2)])
        if kind == "fn":
            parameters = [self.variable() for _ in range(self.draw(st.integers(0, 2)))]
            body = self.expression([*pool, *parameters], size - 1)
            attributes = self.draw(st.dictionaries(st.text(max_size=4), VALUES, max_size=2))
            return relay.Function(parameters, body, self.draw(TYPES), [], attributes)
        if kind == "match":
            data = self.expression(pool, size // 2)
            variable = self.variable()
            patterns = [
                relay.PatternConstructor(CONS, [relay.PatternVar(variable), relay.PatternWildcard()]),
                relay.PatternTuple([relay.PatternConstructor(NIL)]),
            ]
            clauses = [
                relay.Clause(patterns[0], self.expression([*pool, variable], size - 2)),
                relay.Clause(patterns[1], self.expression([*pool], size - 2)),
            ]
            return relay.Match(data, clauses, self.draw(st.booleans()))
        if kind == "ref":
            cell = relay.RefCreate(self.expression(pool, size - 2))
            return relay.RefWrite(cell, relay.RefRead(cell))
        if kind == "cons":
            return CONS(self.expression(pool, size // 2), NIL())
        return self.leaf(pool)


@st.composite
def functions(draw: st.DrawFn) -> relay.Function:
    maker = Maker(draw)
    parameters = [maker.variable() for _ in range(draw(st.integers(1, 3)))]
    return relay.Function(parameters, maker.expression([*parameters], draw(st.integers(0, 8))))


def nodes(function: relay.Function) -> dict[str, int]:
    """How many different nodes of each kind a program has; scalar constants and variables are not shared in texts."""
    count: dict[str, int] = {}

    def visit(expr: relay.Expr) -> None:
        name = type(expr).__name__
        if name not in ("Constant", "Var"):
            count[name] = count.get(name, 0) + 1

    post_order_visit(function, visit)
    return count


@given(functions())
def test_programs_round_trip(function: relay.Function) -> None:
    """What is read is what was printed: structure, sharing, and the text of it."""
    text = function.astext()
    found = parse_expression(text, init_module=LIBRARY)
    assert_structural_equal(found, function, map_free_vars=True)
    assert nodes(found) == nodes(function)
    assert found.astext() == text


@settings(max_examples=40)
@given(functions())
def test_modules_round_trip_as_json(function: relay.Function) -> None:
    """A module that was written as JSON is the same module when it is read."""
    module = LIBRARY.copy()
    module["main"] = function
    found = tvm.ir.load_json(tvm.ir.save_json(module))
    assert_structural_equal(found, module, map_free_vars=True)
    assert str(found) == str(module)


@given(st.floats(width=32, allow_nan=False))
def test_floats_are_exact(value: float) -> None:
    """The digits of a float32 give the same float32 back."""
    found = parse_expression(str(relay.const(value, "float32"))).data.numpy()
    assert found.tobytes() == np.float32(value).tobytes()


def test_names_are_kept() -> None:
    """Variables, type variables and global names come back under the names they had."""
    module = tvm.parser.parse(str(LIBRARY))
    for variable, function in LIBRARY.functions.items():
        found = module[variable.name_hint]
        assert [one.name_hint for one in found.params] == [one.name_hint for one in function.params]
        assert [one.name_hint for one in found.type_params] == [one.name_hint for one in function.type_params]


@pytest.mark.parametrize("form", ["calls", "lets"])
def test_long_programs_round_trip(form: str) -> None:
    """A chain of 20,000 calls, or of as many lets, is read back."""
    x = relay.var("x", shape=(2,))
    body: relay.Expr = x
    for _ in range(20_000):
        body = relay.exp(body) if form == "calls" else relay.Let(relay.var("v"), relay.exp(x), body)
    function = relay.Function([x], body)
    assert_structural_equal(parse_expression(function.astext()), function)


META = MetaTable()
META.reference(relay.const([1.5, 2.5]))
SAMPLES = [
    str(LIBRARY),
    '#[version = "0.0.5"]\ntype T[A] { C(A, fn (A) -> (A,)), D }\nextern type E\n'
    'def @f[A](%x: Tensor[(?, n + 1, 2i64), float32], Primitive=1, k="v") -> ref(T[A]) {\n'
    "  %0 = sum(%x, axis=[-1], keepdims=True) /* c */; let %y: _ = (%0, -1.5e-3f).0;\n"
    "  if (%y < 2f) { ref(C(%x, D)) } else {\n"
    "    match? (D) { C((%a, _), %b) => { @f(%a) }, _ => meta[relay.Constant][0] }\n  }\n}"
    f"\n#[metadata]\n{META.section()}",
]
PIECES = list('()[]{},;:=+-*/<>?.%@"#_ \n0f') + [
    "%0",
    "->",
    "=>",
    "fn",
    "let",
    "meta[",
    "Tensor[",
    "1e999f",
    "\\u",
]


def test_samples_can_be_read() -> None:
    """The texts that are damaged below are right before."""
    assert [len(parse_module(sample).functions) for sample in SAMPLES] == [len(LIBRARY.functions), 1]


@given(st.data())
def test_damaged_texts_are_errors_of_the_text(data: st.DataObject) -> None:
    """Whatever is cut from a text or put into it, reading it succeeds or is a TextFormError: nothing else."""
    text = data.draw(st.sampled_from(SAMPLES))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 20)))
        inserted = "".join(data.draw(st.lists(st.sampled_from(PIECES), max_size=3)))
        text = text[:start] + inserted + text[end:]
    error = None
    with redirect_stderr(io.StringIO()):
        try:
            parse_module(text)
        except TextFormError as found:
            error = found
    assert error is None or error.span is not None


@given(st.text(max_size=30))
def test_any_text_is_an_expression_or_an_error(text: str) -> None:
    """Any characters at all are an expression or a TextFormError."""
    error = None
    with redirect_stderr(io.StringIO()):
        try:
            parse_expression(text)
        except TextFormError as found:
            error = found
    assert error is None or error.message.startswith("error: ")
