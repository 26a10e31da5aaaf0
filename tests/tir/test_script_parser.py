"""Scripts: what is written is what is read, what is printed is what was, and errors show the place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tir import script_programs as programs

from tilewright.ir import operators
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import (
    EQ,
    LT,
    Add,
    And,
    BufferLoad,
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    Let,
    Max,
    Min,
    Mod,
    Mul,
    Not,
    Or,
    PrimExpr,
    Select,
    SizeVar,
    Sub,
    Var,
)
from tilewright.ir.module import IRModule
from tilewright.ir.structural import assert_structural_equal
from tilewright.script import from_source
from tilewright.script import ir as I
from tilewright.script import tir as T
from tilewright.support.errors import ParseError, TilewrightError
from tilewright.tir.function import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    BlockRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    SeqStmt,
    Stmt,
)
from tilewright.tir.verify import verify


def round_trip(func: PrimFunc) -> PrimFunc:
    """The function after printing and parsing, which must be the same."""
    text = func.script()
    again = from_source(text)
    assert_structural_equal(func, again)
    assert again.script() == text
    assert isinstance(again, PrimFunc)
    return again


@pytest.mark.parametrize("func", programs.FUNCTIONS, ids=lambda func: str(func.params[0].name))
def test_programs_come_back(func: PrimFunc) -> None:
    """Every example verifies, and prints as text that parses to the same program."""
    verify(func)
    verify(round_trip(func))


def test_module_comes_back() -> None:
    """A module prints as a class; calls refer to the functions of the module that is read."""
    module = programs.Module
    assert isinstance(module, IRModule)
    text = module.script()
    again = from_source(text)
    assert isinstance(again, IRModule)
    assert_structural_equal(module, again)
    assert again.script() == text
    calls = [part for part in again["main"].body.seq if isinstance(part, Evaluate)]
    assert calls[0].value.op is again.get_global_var("helper")


class TestMeaning:
    """Scripts compute what they say."""

    def test_matmul(self) -> None:
        """A block with an initialisation; the regions that it leaves unsaid are found."""
        a, b = np.random.default_rng(0).random((2, 16, 16), np.float32)
        c = np.zeros((16, 16), np.float32)
        interpret(programs.matmul, a, b, c)
        np.testing.assert_allclose(c, a @ b.T, rtol=1e-5)
        root = programs.matmul.body
        assert isinstance(root, BlockRealize) and root.block.name_hint == "root"
        loop: Any = root.block.body
        block = loop.body.body.body.block
        assert [region.buffer.name for region in block.reads] == ["C", "A", "B"]
        assert [region.buffer.name for region in block.writes] == ["C"]
        assert [axis.iter_type for axis in block.iter_vars] == [
            IterVar.DataPar,
            IterVar.DataPar,
            IterVar.CommReduce,
        ]

    def test_symbolic_shapes(self) -> None:
        """Variables declared with T.var are bound by the arguments."""
        a, b = np.ones((3, 4), np.float32), np.zeros((3, 4), np.float32)
        interpret(programs.symbolic_elementwise, a, b, 2)
        assert b.tolist() == [[2.0] * 4] * 3

    def test_matched_region(self) -> None:
        """A matched region writes through to its buffer."""
        a = np.zeros((32, 32), np.int32)
        interpret(programs.matched_region, a)
        assert (a[9, 23], a[31, 0]) == (1217, 3070)

    def test_flat_program(self) -> None:
        """Allocations, lets, conditions, loops and a returned value."""
        a = np.arange(64, dtype=np.float32)
        assert interpret(programs.flat, a, 6, functions={"ignore": lambda value: value}) == 3
        assert a[0] == 12
        with pytest.raises(TilewrightError, match="n must be positive"):
            interpret(programs.flat, a, 0)

    def test_kernel(self) -> None:
        """Threads and shared memory."""
        a, b = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
        interpret(programs.kernel, a, b)
        np.testing.assert_array_equal(b, a.reshape(4, 8)[:, ::-1].reshape(-1))

    def test_older_block_form(self) -> None:
        """Axes in the head of a block, with loops made around it."""

        @T.prim_func
        def total(a: T.handle, c: T.handle) -> None:
            A = T.match_buffer(a, (4, 8), "int32")
            C = T.match_buffer(c, (4,), "int32")
            with T.block([4, T.reduce_axis(0, 8)], "total") as [vi, vk]:
                with T.init():
                    C[vi] = 0
                C[vi] = C[vi] + A[vi, vk]

        a, c = np.arange(32, dtype=np.int32).reshape(4, 8), np.zeros(4, np.int32)
        interpret(total, a, c)
        assert c.tolist() == a.sum(1).tolist()
        round_trip(total)

    def test_names_from_around(self) -> None:
        """Numbers, types and lists around the function are constants of the program."""
        extent, dtype, shape = 6, "int32", (6, 2)

        @T.prim_func
        def fill(a: T.handle) -> None:
            A = T.match_buffer(a, shape, dtype)
            for i in range(extent):
                A[i, shape[1] - 1] = i * extent + extent // 4

        a = np.zeros((6, 2), np.int32)
        interpret(fill, a)
        assert a[:, 1].tolist() == [1, 7, 13, 19, 25, 31]

    def test_buffer_annotations(self) -> None:
        """A parameter may say at once which buffer it stands for."""

        @T.prim_func
        def double(A: T.Buffer[(4,), "int32"], n: T.Size[T.int32]) -> None:
            for i in T.serial(n):
                A[i] *= 2

        a = np.arange(4, dtype=np.int32)
        interpret(double, a, 3)
        assert a.tolist() == [0, 2, 4, 3]
        assert isinstance(double.params[1], SizeVar)
        round_trip(double)

    def test_spans(self) -> None:
        """Statements know the line that made them."""
        store: Any = programs.matched_region.body
        assert store.span.source_name.name.endswith("script_programs.py")
        assert "def matched_region" in str(store.span)

    def test_nothing_is_run(self) -> None:
        """A text cannot call what is not of the script language."""
        text = """
        @T.prim_func
        def func() -> None:
            T.evaluate(__import__("os").getpid())
        """
        with pytest.raises(ParseError, match="cannot be called in a script|is not defined"):
            from_source(text)


def body_error(*lines: str) -> str:
    """The message for a function with these lines."""
    head = [
        "@T.prim_func",
        "def func(a: T.handle, n: T.int32) -> None:",
        '    A = T.match_buffer(a, [8, 8], "float32")',
    ]
    with pytest.raises(ParseError) as caught:
        from_source("\n".join([*head, *[f"    {line}" for line in lines]]))
    return str(caught.value)


class TestErrors:
    """What is wrong is said at the place where it is."""

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("A[0, 0] = missing", "missing is not defined"),
            ("A[0] = T.float32(1)", "buffer A has 2 dimensions, 1 indices are given"),
            ("A[0, 0] = T.exq(A[0, 0])", "T has no exq; did you mean exp"),
            ("T.evaluate(n / 2)", "'/' on integers is ambiguous"),
            ("for i in n: pass", "a loop runs over range"),
            ("import os", "Import cannot be used in a script"),
            ("x = lambda: 1", "Lambda cannot be used in a script"),
            ("T.reads(A[0, 0])", "this is outside a block"),
            ("A[0, 0] = T.broadcast(T.broadcast(n, 2), 2)", "only a scalar can be broadcast"),
            ("B = T.match_buffer(n, [8])", "parameter n has type int32, not T.handle"),
            ("T.serial(3)", "T.serial is a statement"),
            ("A[0, 0] = T.tvm_access_ptr(A)", "T.tvm_access_ptr needs the type of its result"),
            ("A[0, 0] = T.Select(n)", "T.Select: "),
            ("A[0, 0:] = n", "a region needs a start and an end"),
        ],
    )
    def test_message(self, line: str, message: str) -> None:
        """The message names the mistake, and shows the line with a caret."""
        shown = body_error(line)
        assert message in shown
        assert shown.startswith("<script>:4:")
        assert "^" in shown.splitlines()[-1]
        assert shown.splitlines()[-2].strip() == line

    def test_caret(self) -> None:
        """The caret stands under the offending part."""
        assert body_error("A[0, n] = A[n, wrong] + 1").endswith(
            "    A[0, n] = A[n, wrong] + 1\n    " + " " * 19 + "^^^^^"
        )

    def test_file_and_line(self) -> None:
        """A decorated function's error names its file and line."""
        with pytest.raises(ParseError, match=r"test_script_parser\.py:\d+:\d+: unknown_name is not defined"):

            @T.prim_func
            def func(a: T.handle) -> None:
                T.evaluate(unknown_name)

    def test_not_python(self) -> None:
        """A syntax error is shown at its place."""
        with pytest.raises(ParseError, match="<script>:2:.*this is not Python"):
            from_source("@T.prim_func\ndef func(:\n    pass")

    def test_too_deep(self) -> None:
        """A text too deep for Python's parser is refused, not crashed on."""
        text = (
            "@T.prim_func\ndef func(n: T.int32) -> None:\n    T.evaluate(" + "(" * 500 + "n" + ")" * 500 + ")"
        )
        with pytest.raises(ParseError, match="too deeply|too many nested"):
            from_source(text)

    def test_outside_of_a_script(self) -> None:
        """The names of the language mean nothing when they are called by Python."""
        with pytest.raises(TilewrightError, match="only inside a function decorated"):
            T.serial(4)
        with pytest.raises(AttributeError, match="T has no serail; did you mean serial"):
            T.serail


# Random programs

_BINARY = (Add, Sub, Mul, FloorDiv, FloorMod, Div, Mod, Min, Max)


@st.composite
def integer_expressions(draw: Any, variables: list[Var], depth: int) -> PrimExpr:
    """An int32 expression over some variables."""
    if depth == 0 or draw(st.booleans()):
        leaf = draw(st.integers(0, len(variables)))
        return (
            variables[leaf]
            if leaf < len(variables)
            else IntImm("int32", draw(st.integers(-(2**31), 2**31 - 1)))
        )
    kind = draw(st.integers(0, 5))
    a = draw(integer_expressions(variables, depth - 1))
    b = draw(integer_expressions(variables, depth - 1))
    if kind <= 1:
        return draw(st.sampled_from(_BINARY))(a, b)
    if kind == 2:
        return Select(draw(conditions(variables, depth - 1)), a, b)
    if kind == 3:
        return Cast("int32", Cast(draw(st.sampled_from(["int8", "uint16", "float32", "bool"])), a))
    if kind == 4:
        x = Var("x", "int32")
        return Let(x, a, Add(x, b))
    return operators.call("if_then_else", "int32", [draw(conditions(variables, depth - 1)), a, b])


@st.composite
def conditions(draw: Any, variables: list[Var], depth: int) -> PrimExpr:
    """A bool expression."""
    kind = draw(st.integers(0, 4)) if depth > 0 else 0
    if kind <= 1:
        a, b = (
            draw(integer_expressions(variables, 0)),
            draw(integer_expressions(variables, max(depth - 1, 0))),
        )
        return draw(st.sampled_from([EQ, LT]))(a, b)
    if kind == 2:
        return Not(draw(conditions(variables, depth - 1)))
    return (And if kind == 3 else Or)(
        draw(conditions(variables, depth - 1)), draw(conditions(variables, depth - 1))
    )


NAMES = st.sampled_from(["i", "j", "A", "T", "for", "i.outer", "T_1", "", "x y", "范"])


@st.composite
def statements(draw: Any, buffer: Any, variables: list[Var], depth: int) -> Stmt:
    """A statement that is not a sequence."""
    value = integer_expressions(variables, 2)
    kind = draw(st.integers(0, 8)) if depth > 0 else draw(st.integers(0, 1))
    if kind == 0:
        return BufferStore(buffer, draw(value), [draw(value)])
    if kind == 1:
        return Evaluate(operators.call("likely", "int32", [BufferLoad(buffer, [draw(value)])]))

    def body(*added: Var) -> Stmt:
        inner = [*variables, *added]
        parts = [draw(statements(buffer, inner, depth - 1)) for _ in range(draw(st.integers(1, 3)))]
        return parts[0] if len(parts) == 1 else SeqStmt(parts)

    if kind in (2, 3):
        loop = Var(draw(NAMES), "int32")
        annotations = {"unroll": 1} if draw(st.booleans()) else None
        extent = draw(value)
        return For(
            loop,
            draw(st.sampled_from([0, 3, extent])),
            extent,
            draw(st.integers(0, 3)),
            body(loop),
            None,
            annotations,
        )
    if kind == 4:
        made = Var(draw(NAMES), "int32")
        return LetStmt(made, draw(value), body(made))
    if kind == 5:
        condition = draw(conditions(variables, 2))
        return IfThenElse(condition, body(), body() if draw(st.booleans()) else None)
    if kind == 6:
        return AssertStmt(draw(conditions(variables, 1)), 'a "message"\n', body())
    if kind == 7:
        return AttrStmt(draw(st.sampled_from(["default", buffer.data])), "key", draw(value), body())
    memory = decl_buffer((4,), "int32", draw(NAMES), scope="shared").data
    return Allocate(memory, "int32", [draw(value)], True, body())


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_random_programs_come_back(data: Any) -> None:
    """Any program of these statements prints to text that parses to the same program, whatever its names."""
    n = data.draw(st.sampled_from([Var, SizeVar]))(data.draw(NAMES), "int32")
    m = Var(data.draw(NAMES), "int32")
    buffer = decl_buffer((n,), "int32", data.draw(NAMES))
    parts = [data.draw(statements(buffer, [n, m], 3)) for _ in range(data.draw(st.integers(1, 3)))]
    round_trip(PrimFunc([m, buffer], parts[0] if len(parts) == 1 else SeqStmt(parts)))


@pytest.mark.parametrize(
    "value", [0.1, 1e300, -0.0, float("inf"), float("-inf"), float("nan"), 3.4e38, 5e-324]
)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_floats_come_back(dtype: str, value: float) -> None:
    """A constant keeps every digit."""
    round_trip(PrimFunc([], Evaluate(FloatImm(dtype, value))))


def test_thread_loops_come_back() -> None:
    """A loop bound to a thread, by its tag alone or by an axis with a range."""
    out = decl_buffer((4,), "int32", "out")
    for domain in (None, (0, 4)):
        i = Var("i", "int32")
        axis = IterVar(domain, Var("tx", "int32"), IterVar.ThreadIndex, "threadIdx.x")
        round_trip(PrimFunc([out], For(i, 0, 4, ForKind.THREAD_BINDING, BufferStore(out, i, [i]), axis)))


def test_attributes_come_back() -> None:
    """Attributes of functions: plain values, constants with their class, types, targets, axes."""
    from tilewright.target import Target

    axis = IterVar((0, 8), Var("tx", "int32"), IterVar.ThreadIndex, "threadIdx.x")
    attributes = {
        "text": 'with "quotes"',
        "number": 3,
        "flag": True,
        "nothing": None,
        "constant": IntImm("int64", 5),
        "list": [1, [2.5, "x"], {"a": FloatImm("float32", 0.5)}],
        "axes": [axis],
    }
    again = round_trip(PrimFunc([], Evaluate(0), attrs=attributes))
    assert again.attrs["text"] == 'with "quotes"' and again.attrs["number"] == 3
    assert again.attrs["list"][1] == [2.5, "x"]
    target = from_source(PrimFunc([], Evaluate(0), attrs={"target": Target("llvm -mcpu=generic")}).script())
    assert isinstance(target, PrimFunc) and str(target.attrs["target"]) == str(Target("llvm -mcpu=generic"))


def test_virtual_threads_are_launched_as_such() -> None:
    """``T.launch_thread`` of a virtual thread is the attribute that ``FlattenBuffer`` writes, and is printed so."""

    @T.prim_func
    def virtual(a: T.handle) -> None:
        A = T.match_buffer(a, (4,), "float32")
        v = T.env_thread("vthread")
        T.launch_thread(v, 4)
        A[v] = 1.0

    assert virtual.body.attr_key == "virtual_thread"
    assert "T.launch_thread(v, 4)" in virtual.script()


@I.ir_module
class Doubled:
    @T.prim_func
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")) -> None:
        for i in T.serial(4):
            B[i] = A[i] + A[i]


def test_modules_by_their_later_name() -> None:
    """``I.ir_module`` makes the module that ``tvm.script.ir_module`` does."""
    assert [variable.name_hint for variable in Doubled.functions] == ["main"]
    assert_structural_equal(from_source(Doubled.script()), Doubled)
