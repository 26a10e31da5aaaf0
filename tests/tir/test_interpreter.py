"""The interpreter: what each node computes, and what a faulty program gets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer, BufferRegion, decl_buffer
from tilewright.ir.expr import (
    Add,
    And,
    Broadcast,
    BufferLoad,
    Call,
    Cast,
    CommReducer,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    Let,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    PrimExpr,
    Ramp,
    Range,
    Reduce,
    Select,
    Shuffle,
    StringImm,
    Sub,
    Var,
)
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.errors import TilewrightError
from tilewright.tir.function import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.stmt import (
    Allocate,
    AssertStmt,
    AttrStmt,
    Block,
    BlockRealize,
    BufferRealize,
    BufferStore,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    LetStmt,
    MatchBufferRegion,
    SeqStmt,
    Stmt,
    Store,
    While,
)


def pointer(name: str, dtype: str = "float32", scope: str = "") -> Var:
    """A pointer variable."""
    return Var(name, PointerType(PrimType(dtype), scope))


def evaluate(expr: PrimExpr) -> Any:
    """The value of a closed expression, through memory of its own type."""
    lanes = expr.dtype.lanes
    out = decl_buffer((lanes,), expr.dtype.element, "out")
    index: Any = IntImm("int32", 0) if lanes == 1 else Ramp(0, 1, lanes)
    result = np.zeros(lanes, "uint16" if expr.dtype.is_bfloat16 else str(expr.dtype.element))
    interpret(PrimFunc([out], BufferStore(out, expr, [index])), result)
    return result if lanes > 1 else result[0]


def intrinsic(name: str, dtype: str, *args: Any) -> Call:
    """A call of ``tir.<name>``."""
    return operators.call(name, dtype, list(args))


def float32(value: float) -> PrimExpr:
    return FloatImm("float32", value)


def int32(value: int) -> PrimExpr:
    return IntImm("int32", value)


class TestArithmetic:
    """Scalars compute as their type does."""

    def test_int32_wraps(self) -> None:
        """A sum beyond the type comes out at the other end."""
        assert evaluate(Add(int32(2**31 - 1), int32(1))) == -(2**31)
        assert evaluate(Mul(int32(65536), int32(65536))) == 0
        assert evaluate(Sub(IntImm("uint8", 3), IntImm("uint8", 5))) == 254

    @pytest.mark.parametrize(
        ("a", "b", "quotient", "remainder", "floor_quotient", "floor_remainder"),
        [(7, 2, 3, 1, 3, 1), (-7, 2, -3, -1, -4, 1), (7, -2, -3, 1, -4, -1), (-7, -2, 3, -1, 3, -1)],
    )
    def test_division(
        self, a: int, b: int, quotient: int, remainder: int, floor_quotient: int, floor_remainder: int
    ) -> None:
        """Div and Mod truncate, FloorDiv and FloorMod round down; a vector divides as a scalar does."""
        expected = {Div: quotient, Mod: remainder, FloorDiv: floor_quotient, FloorMod: floor_remainder}
        for make, value in expected.items():
            assert evaluate(make(int32(a), int32(b))) == value
            assert evaluate(make(Broadcast(int32(a), 2), Broadcast(int32(b), 2))).tolist() == [value] * 2

    def test_division_by_zero_is_an_error(self) -> None:
        """A division by a zero that is only known at run time is reported, not computed."""
        x = Var("x", "int32")
        out = decl_buffer((1,), "int32", "out")
        program = PrimFunc([x, out], BufferStore(out, FloorDiv(int32(3), x), [0]))
        with pytest.raises(TilewrightError, match="division of 3 by zero"):
            interpret(program, 0, np.zeros(1, "int32"))

    def test_float32_rounds_like_float32(self) -> None:
        """Neither a wider accumulator nor a fused product hides in an expression."""
        a, b, c = np.float32(1.0000001), np.float32(3.0000002), np.float32(-3.0)
        expr = Add(Mul(float32(a), float32(b)), float32(c))
        assert evaluate(expr) == np.float32(np.float32(a * b) + c)
        assert evaluate(Div(float32(1), float32(0))) == np.inf

    def test_float16_rounds_like_float16(self) -> None:
        """2049 is no half-precision number."""
        assert evaluate(Add(FloatImm("float16", 2048), FloatImm("float16", 1))) == np.float16(2048)

    def test_bfloat16_rounds_to_nearest_even(self) -> None:
        """A bfloat16 has eight significant bits: 256 + 1 is halfway and goes to the even neighbour."""
        one, big = FloatImm("bfloat16", 1), FloatImm("bfloat16", 256)
        assert evaluate(Add(big, one)) == 0x4380
        assert evaluate(Add(big, Add(Add(one, one), one))) == 0x4382

    def test_min_and_max_with_nan(self) -> None:
        """The comparison decides: with a NaN it is false, and the second operand comes out."""
        nan = float32(float("nan"))
        assert evaluate(Min(nan, float32(2))) == 2
        assert np.isnan(evaluate(Max(float32(2), nan)))

    @pytest.mark.parametrize(
        ("source", "dtype", "expected"),
        [
            (FloatImm("float32", -2.9), "int32", -2),
            (IntImm("int32", 300), "uint8", 44),
            (IntImm("int32", 200), "int8", -56),
            (FloatImm("float32", 0.5), "bool", True),
            (IntImm("int64", 2**53 + 1), "float64", float(2**53)),
            (
                IntImm("int64", 2**54 + 2**30 + 1),
                "float32",
                float(np.int64(2**54 + 2**30 + 1).astype(np.float32)),
            ),
            (FloatImm("float32", 1e6), "float16", np.inf),
        ],
    )
    def test_cast(self, source: PrimExpr, dtype: str, expected: Any) -> None:
        """Floats truncate, integers wrap, bool asks for zero, and a large integer rounds once."""
        assert evaluate(Cast(dtype, source)) == expected

    @given(strategies.integers(-(2**31), 2**31 - 1), strategies.integers(-(2**31), 2**31 - 1))
    def test_integers_agree_with_numpy(self, a: int, b: int) -> None:
        """Sum, difference and product are those of NumPy's int32, as scalars and as lanes."""
        left, right = np.array([a], np.int32), np.array([b], np.int32)
        for make, result in ((Add, left + right), (Sub, left - right), (Mul, left * right)):
            assert evaluate(make(int32(a), int32(b))) == result[0]
            assert evaluate(make(Broadcast(int32(a), 4), Broadcast(int32(b), 4)))[3] == result[0]


class TestIntrinsics:
    """Calls of operators."""

    @pytest.mark.parametrize(
        ("name", "argument", "expected"),
        [
            ("exp", 1.0, np.e),
            ("log2", 8.0, 3.0),
            ("erf", 0.5, 0.5204998778130465),
            ("sigmoid", -100.0, 3.720075976020836e-44),
            ("rsqrt", 4.0, 0.5),
            ("round", 2.5, 3.0),
            ("round", -0.5, -1.0),
            ("nearbyint", 2.5, 2.0),
            ("trunc", -1.5, -1.0),
            ("exp10", 2.0, 100.0),
            ("sqrt", -1.0, np.nan),
            ("acos", 2.0, np.nan),
        ],
    )
    def test_functions_of_one_float(self, name: str, argument: float, expected: float) -> None:
        """The nearest float32 to the exact value, in a scalar and in a vector."""
        value = evaluate(intrinsic(name, "float32", float32(argument)))
        np.testing.assert_equal(value, np.float32(expected))
        lanes = evaluate(intrinsic(name, "float32x2", Broadcast(float32(argument), 2)))
        np.testing.assert_equal(lanes, np.full(2, expected, np.float32))

    def test_functions_of_two_floats(self) -> None:
        """pow, fmod, atan2, hypot, copysign, nextafter, ldexp."""
        two, three = float32(2), float32(3)
        assert evaluate(intrinsic("pow", "float32", two, three)) == 8
        assert evaluate(intrinsic("fmod", "float32", float32(-7), three)) == -1
        assert evaluate(intrinsic("hypot", "float32", three, float32(4))) == 5
        assert evaluate(intrinsic("copysign", "float32", two, float32(-0.0))) == -2
        assert evaluate(intrinsic("nextafter", "float32", float32(1), two)) == np.nextafter(
            np.float32(1), np.float32(2)
        )
        assert evaluate(intrinsic("ldexp", "float32", three, int32(4))) == 48

    def test_fma_rounds_once(self) -> None:
        """The product of a fused multiply-add is exact."""
        a = FloatImm("float64", 1 + 2**-30)
        fused = evaluate(intrinsic("fma", "float64", a, a, FloatImm("float64", -1.0)))
        assert fused == 2**-29 + 2**-60
        assert evaluate(Add(Mul(a, a), FloatImm("float64", -1.0))) == 2**-29

    def test_bits(self) -> None:
        """Shifts, masks, counts and reinterpretation."""
        assert evaluate(intrinsic("shift_left", "int32", int32(1), int32(31))) == -(2**31)
        assert evaluate(intrinsic("shift_right", "int32", int32(-8), int32(1))) == -4
        assert (
            evaluate(intrinsic("bitwise_xor", "uint8", IntImm("uint8", 0xF0), IntImm("uint8", 0xFF))) == 0x0F
        )
        assert evaluate(intrinsic("bitwise_not", "int32", int32(0))) == -1
        assert evaluate(intrinsic("popcount", "int32", int32(-1))) == 32
        assert evaluate(intrinsic("clz", "int32", int32(1))) == 31
        assert evaluate(intrinsic("reinterpret", "int32", float32(1.0))) == 0x3F800000
        assert (
            evaluate(intrinsic("large_uint_imm", "uint64", IntImm("uint32", 1), IntImm("uint32", 2)))
            == 2**33 + 1
        )

    def test_multiply_shift(self) -> None:
        """A fixed-point product rounds halves up."""
        args = [int32(3), int32(1 << 30), int32(31), int32(0)]
        assert evaluate(intrinsic("q_multiply_shift", "int32", *args)) == 2
        args = [int32(-3), int32(1 << 30), int32(31), int32(0)]
        assert evaluate(intrinsic("q_multiply_shift", "int32", *args)) == -1

    def test_undefined_shift_is_an_error(self) -> None:
        """A shift by as many bits as the type has is reported."""
        with pytest.raises(TilewrightError, match="a shift by 32 bits is undefined"):
            evaluate(intrinsic("shift_left", "int32", int32(1), int32(32)))

    def test_unknown_intrinsic_is_an_error(self) -> None:
        """An operator without a meaning here is named."""
        with pytest.raises(TilewrightError, match=r"no intrinsic tir\.ptx_mma"):
            evaluate(intrinsic("ptx_mma", "int32"))


class TestLaziness:
    """Which operands are evaluated."""

    def setup_method(self) -> None:
        self.a = decl_buffer((4,), "float32", "A")
        self.i = Var("i", "int32")

    def run(self, make: Any) -> np.ndarray[Any, Any]:
        out = decl_buffer((6,), "float32", "out")
        load = BufferLoad(self.a, [self.i])
        body = For(
            self.i, 0, 6, ForKind.SERIAL, BufferStore(out, make(self.i < 4, load, float32(-1)), [self.i])
        )
        result = np.zeros(6, np.float32)
        interpret(PrimFunc([self.a, out], body), np.arange(4, dtype=np.float32), result)
        return result

    def test_if_then_else_skips_the_other_branch(self) -> None:
        """The guarded load is not made."""
        result = self.run(lambda c, x, y: intrinsic("if_then_else", "float32", c, x, y))
        assert result.tolist() == [0, 1, 2, 3, -1, -1]

    def test_select_evaluates_both(self) -> None:
        """The same load under a Select is out of bounds, and the error names buffer and index."""
        with pytest.raises(TilewrightError, match=r"buffer A\[0:4\] was accessed at \[4\]"):
            self.run(Select)

    def test_and_evaluates_both(self) -> None:
        """And promises no short cut, so that a guard in it does not guard."""
        with pytest.raises(TilewrightError, match="out of bounds"):
            self.run(lambda c, x, y: Select(And(c, x < y), y, y))


class TestVectors:
    """Lanes."""

    def test_ramp_broadcast_shuffle(self) -> None:
        """Lanes of a ramp, of a broadcast, and lanes picked out of two vectors."""
        assert evaluate(Ramp(3, 2, 4)).tolist() == [3, 5, 7, 9]
        assert evaluate(Broadcast(float32(1.5), 3)).tolist() == [1.5] * 3
        assert evaluate(Shuffle([Ramp(0, 1, 4), Ramp(10, 1, 4)], [7, 0, 4])).tolist() == [13, 0, 10]
        assert evaluate(Shuffle([Ramp(0, 1, 4)], [2])) == 2

    def test_halves(self) -> None:
        """vectorlow, vectorhigh and vectorcombine."""
        ramp = Ramp(0, 1, 4)
        low, high = intrinsic("vectorlow", "int32x2", ramp), intrinsic("vectorhigh", "int32x2", ramp)
        assert evaluate(intrinsic("vectorcombine", "int32x4", high, low)).tolist() == [2, 3, 0, 1]

    def test_predicated_store_and_load(self) -> None:
        """Lanes that are masked out are neither read nor written, wherever they point."""
        source, target = pointer("source"), pointer("target")
        mask = Ramp(0, 1, 4) < Broadcast(int32(2), 4)
        index = Ramp(2, 1, 4)
        body = Store(
            target, Load("float32x4", source, index, mask) + Broadcast(float32(1), 4), Ramp(0, 1, 4), mask
        )
        src, dst = np.array([1, 2, 3, 4], np.float32), np.array([-1, -1, -1, -1], np.float32)
        interpret(PrimFunc([source, target], body), src, dst)
        assert dst.tolist() == [4, 5, -1, -1]

    def test_vector_element_type(self) -> None:
        """An index with fewer lanes than the value counts whole vectors."""
        data = pointer("data", "float32x4")
        body = Store(data, Load("float32x4", data, int32(1)), int32(0))
        array = np.arange(8, dtype=np.float32)
        interpret(PrimFunc([data], body), array)
        assert array.tolist() == [4, 5, 6, 7, 4, 5, 6, 7]

    def test_buffer_of_vectors(self) -> None:
        """A buffer may hold vectors; its argument has the lanes as last dimension."""
        a, b = decl_buffer((2,), "float32x4", "a"), decl_buffer((2,), "float32x4", "b")
        i = Var("i", "int32")
        body = For(i, 0, 2, ForKind.SERIAL, BufferStore(b, a[i] * Broadcast(float32(2), 4), [1 - i]))
        source, target = np.arange(8, dtype=np.float32).reshape(2, 4), np.zeros((2, 4), np.float32)
        interpret(PrimFunc([a, b], body), source, target)
        np.testing.assert_array_equal(target, source[::-1] * 2)


class TestBuffers:
    """Buffers as arguments, and buffers with memory of their own."""

    def test_symbolic_shapes_bind(self) -> None:
        """Variables of a shape take their values from the argument; the same variable twice must agree."""
        n = Var("n", "int32")
        a, b = decl_buffer((n,), "int32", "A"), decl_buffer((n,), "int32", "B")
        i = Var("i", "int32")
        program = PrimFunc([a, b], For(i, 0, n, ForKind.PARALLEL, BufferStore(b, a[i] * 2 + n, [i])))
        result = np.zeros(5, np.int32)
        interpret(program, np.arange(5, dtype=np.int32), result)
        assert result.tolist() == [5, 7, 9, 11, 13]
        with pytest.raises(TilewrightError, match="dimension 0 of argument B must be n = 5, it is 6"):
            interpret(program, np.arange(5, dtype=np.int32), np.zeros(6, np.int32))

    def test_strides_and_offset_bind(self) -> None:
        """A transposed, reversed view works where the buffer leaves strides and offset free."""
        strides, offset = [Var("s0", "int32"), Var("s1", "int32")], Var("offset", "int32")
        a = decl_buffer((2, 3), "float64", "A", strides=strides, elem_offset=offset)
        b = decl_buffer((2, 3), "float64", "B")
        i, j = Var("i", "int32"), Var("j", "int32")
        copy = For(i, 0, 2, ForKind.SERIAL, For(j, 0, 3, ForKind.SERIAL, BufferStore(b, a[i, j], [i, j])))
        base = np.arange(12, dtype=np.float64).reshape(3, 4)
        view = base[::-1, 1:3].T
        result = np.zeros((2, 3))
        interpret(PrimFunc([a, b], copy), view, result)
        np.testing.assert_array_equal(result, view)

    def test_compact_buffers_refuse_views(self) -> None:
        """A buffer without strides takes compact arrays alone."""
        a = decl_buffer((2, 3), "float64", "A")
        with pytest.raises(TilewrightError, match="argument A must be compact"):
            interpret(PrimFunc([a], Evaluate(0)), np.zeros((3, 2)).T)

    @pytest.mark.parametrize(
        ("array", "message"),
        [
            (np.zeros((2, 3), np.int32), "argument A must hold float32, the array holds int32"),
            (np.zeros(6, np.float32), "argument A must have 2 dimensions, the array has 1"),
            (np.zeros((2, 4), np.float32), "dimension 1 of argument A must be 3 = 3, it is 4"),
            ("text", "argument A must be an array, not str"),
        ],
    )
    def test_wrong_arguments(self, array: Any, message: str) -> None:
        """A mismatch says which argument, what was expected, what came."""
        a = decl_buffer((2, 3), "float32", "A")
        with pytest.raises(TilewrightError, match=message):
            interpret(PrimFunc([a], Evaluate(0)), array)

    def test_broadcasting_buffer(self) -> None:
        """In an auto_broadcast buffer a dimension of one stands for any size."""
        m = Var("m", "int32")
        a = decl_buffer((m,), "float32", "A", strides=[Var("s", "int32")], buffer_type="auto_broadcast")
        b = decl_buffer((4,), "float32", "B")
        i = Var("i", "int32")
        program = PrimFunc([a, b], For(i, 0, 4, ForKind.SERIAL, BufferStore(b, a[i], [i])))
        result = np.zeros(4, np.float32)
        interpret(program, np.array([7], np.float32), result)
        assert result.tolist() == [7, 7, 7, 7]

    def test_realized_box(self) -> None:
        """A realized buffer has memory for its box alone, addressed by the indices of the whole."""
        out = decl_buffer((4,), "int32", "out")
        t = decl_buffer((100,), "int32", "T")
        i, j = Var("i", "int32"), Var("j", "int32")
        fill = For(i, 10, 4, ForKind.SERIAL, BufferStore(t, i * i, [i]))
        take = For(j, 0, 4, ForKind.SERIAL, BufferStore(out, t[j + 10], [j]))
        body = BufferRealize(t, [Range.from_min_extent(10, 4)], True, SeqStmt([fill, take]))
        result = np.zeros(4, np.int32)
        interpret(PrimFunc([out], body), result)
        assert result.tolist() == [100, 121, 144, 169]
        outside = BufferRealize(t, [Range.from_min_extent(10, 4)], True, BufferStore(t, 0, [14]))
        with pytest.raises(TilewrightError, match=r"buffer T\[10:14\] was accessed at \[14\]"):
            interpret(PrimFunc([out], outside), result)

    def test_bound_buffer(self) -> None:
        """buffer_bind_scope makes a buffer a window of another, with its offset and strides bound."""
        a = decl_buffer((4, 5), "int32", "A")
        window = decl_buffer(
            (2, 3), "int32", "window", strides=[Var("s0", "int32"), Var("s1", "int32")], offset_factor=1
        )
        i, j = Var("i", "int32"), Var("j", "int32")
        fill = BufferStore(window, i * 10 + j, [i, j])
        loops = For(i, 0, 2, ForKind.SERIAL, For(j, 0, 3, ForKind.SERIAL, fill))
        box = intrinsic("tvm_tuple", "handle", int32(1), int32(2), int32(2), int32(3))
        result = np.full((4, 5), -1, np.int32)
        interpret(PrimFunc([a], AttrStmt([window, a], "buffer_bind_scope", box, loops)), result)
        expected = np.full((4, 5), -1)
        expected[1:3, 2:5] = [[0, 1, 2], [10, 11, 12]]
        np.testing.assert_array_equal(result, expected)

    def test_fresh_memory_is_not_zero(self) -> None:
        """What is read before it is written shows as NaN."""
        out, temporary = decl_buffer((1,), "float32", "out"), pointer("t")
        body = Allocate(temporary, "float32", [1], True, BufferStore(out, Load("float32", temporary, 0), [0]))
        result = np.zeros(1, np.float32)
        interpret(PrimFunc([out], body), result)
        assert np.isnan(result[0])

    def test_bfloat16_arguments_are_bits(self) -> None:
        """bfloat16 arrays hold sixteen bits an element."""
        a = decl_buffer((2,), "bfloat16", "A")
        program = PrimFunc([a], BufferStore(a, a[0] + a[1], [0]))
        bits = np.array([0x3F80, 0x4000], np.uint16)
        interpret(program, bits)
        assert bits.tolist() == [0x4040, 0x4000]

    def test_deep_expressions_run(self) -> None:
        """A sum of twenty thousand terms costs heap, not the C stack."""
        x = Var("x", "int32")
        total: PrimExpr = x
        for _ in range(20_000):
            total = Add(total, x)
        out = decl_buffer((1,), "int32", "out")
        result = np.zeros(1, np.int32)
        interpret(PrimFunc([x, out], BufferStore(out, total, [0])), 3, result)
        assert result[0] == 60_003

    def test_shared_expressions_run_once(self) -> None:
        """A graph of two hundred doublings is evaluated in two hundred steps, and guards in it still guard."""
        x = Var("x", "int32")
        a = decl_buffer((4,), "int32", "A")
        total: PrimExpr = intrinsic("if_then_else", "int32", x < 4, BufferLoad(a, [x]), int32(1))
        for _ in range(200):
            total = Add(total, Min(total, int32(3)))
        out = decl_buffer((1,), "int32", "out")
        result = np.zeros(1, np.int32)
        program = PrimFunc([x, a, out], BufferStore(out, total, [0]))
        interpret(program, 9, np.zeros(4, np.int32), result)
        # 1, 2, 4, and then three more in each of the other steps.
        assert result[0] == 4 + 198 * 3
        interpret(program, 2, np.full(4, -1, np.int32), result)
        assert result[0] == 0


class TestStatements:
    """Control."""

    def test_loops_conditions_lets(self) -> None:
        """A loop with a start, a condition with both branches, and a let."""
        out = decl_buffer((6,), "int32", "out")
        i, square = Var("i", "int32"), Var("square", "int32")
        inner = IfThenElse(i < 4, BufferStore(out, square, [i]), BufferStore(out, -square, [i]))
        body = For(i, 2, 4, ForKind.UNROLLED, LetStmt(square, i * i, inner))
        result = np.zeros(6, np.int32)
        interpret(PrimFunc([out], body), result)
        assert result.tolist() == [0, 0, 4, 9, -16, -25]

    def test_while(self) -> None:
        """A while loop runs as long as its condition holds: the integer square root of fifty."""
        out = decl_buffer((1,), "int32", "out")
        body = While(out[0] * out[0] <= 50, BufferStore(out, out[0] + 1, [0]))
        result = np.zeros(1, np.int32)
        interpret(PrimFunc([out], body), result)
        assert result[0] == 8

    def test_let_expression(self) -> None:
        """A let binds within its body."""
        x = Var("x", "int32")
        assert evaluate(Let(x, int32(5), x * x)) == 25

    def test_reduce_expression(self) -> None:
        """A reduction over two axes with a condition, and an arg-max of pairs."""
        r, s = IterVar((0, 4), "r", 2), IterVar((1, 4), "s", 2)
        a, b = Var("a", "int32"), Var("b", "int32")
        total = CommReducer([a], [b], [a + b], [int32(0)])
        assert evaluate(Reduce(total, [r.var * s.var], [r, s], r.var > 1, 0)) == (2 + 3) * (1 + 2 + 3)
        i, v, k, w = Var("i"), Var("v"), Var("k"), Var("w")
        best = CommReducer([i, v], [k, w], [Select(v >= w, i, k), Max(v, w)], [int32(-1), int32(-(2**31))])
        score = 3 - (r.var - 2) * (r.var - 2)
        assert evaluate(Reduce(best, [r.var, score], [r], True, 0)) == 2

    def test_assert(self) -> None:
        """A failed assertion ends the program with its message; a passed one does nothing."""
        n = Var("n", "int32")
        program = PrimFunc([n], AssertStmt(n > 2, "n is too small", Evaluate(0)))
        assert interpret(program, 3) is None
        with pytest.raises(TilewrightError, match="assertion failed: n is too small"):
            interpret(program, 2)

    def test_return(self) -> None:
        """ret leaves the function with a value."""
        n, i = Var("n", "int32"), Var("i", "int32")
        leave = IfThenElse(i * i > n, Evaluate(intrinsic("ret", "int32", i)))
        program = PrimFunc([n], For(i, 0, 100, ForKind.SERIAL, leave))
        assert interpret(program, 30) == 6

    def test_wrong_number_of_arguments(self) -> None:
        """The parameters are named."""
        with pytest.raises(TilewrightError, match=r"takes 1 arguments \(n\), 0 were given"):
            interpret(PrimFunc([Var("n", "int32")], Evaluate(0)))

    def test_calls_by_name(self) -> None:
        """Packed calls get strings, scalars and arrays over the same memory; their results come back."""
        a = decl_buffer((4,), "float32", "A")
        shape = intrinsic("tvm_stack_make_shape", "handle", int32(4))
        array = intrinsic(
            "tvm_stack_make_array",
            "handle",
            *[a.data, shape, intrinsic("tvm_tuple", "handle"), int32(1), float32(0), int32(0)],
        )
        call = intrinsic("tvm_call_packed", "int32", StringImm("twice"), array, int32(10))
        program = PrimFunc([a], Evaluate(intrinsic("ret", "int32", call)))

        def twice(tensor: np.ndarray[Any, Any], number: int) -> int:
            tensor *= 2
            return number + 1

        values = np.arange(4, dtype=np.float32)
        assert interpret(program, values, functions={"twice": twice}) == 11
        assert values.tolist() == [0, 2, 4, 6]
        with pytest.raises(TilewrightError, match="calls twice, which is not registered"):
            interpret(program, values)

    def test_access_pointer_and_atomic_add(self) -> None:
        """An address is memory and a distance; atomic_add gives the old value."""
        a = decl_buffer((4,), "int32", "A")
        address = a.access_ptr("rw", offset=2)
        add = intrinsic("atomic_add", "int32", address, int32(5))
        values = np.arange(4, dtype=np.int32)
        assert interpret(PrimFunc([a], Evaluate(intrinsic("ret", "int32", add))), values) == 2
        assert values.tolist() == [0, 1, 7, 3]
        add = intrinsic("atomic_add", "int32", intrinsic("address_of", "handle", a[3]), int32(1))
        interpret(PrimFunc([a], Evaluate(add)), values)
        assert values.tolist() == [0, 1, 7, 4]


def block(
    axes: list[tuple[str, int, int, PrimExpr]], body: Any, init: Any = None, where: Any = True, **rest: Any
) -> BlockRealize:
    """A block with axes given as (name, extent, kind, value); body and init are functions of the axes' variables."""
    iter_vars = [IterVar((0, extent), name, kind) for name, extent, kind, _ in axes]
    variables = [axis.var for axis in iter_vars]
    made = Block(
        iter_vars, [], [], "block", body(*variables), None if init is None else init(*variables), **rest
    )
    return BlockRealize([value for *_, value in axes], where, made)


class TestBlocks:
    """Blocks of schedulable programs."""

    def test_reduction_with_init(self) -> None:
        """Init runs in the first step of the reduction alone, even where the axis is split."""
        a, c = decl_buffer((3, 8), "float32", "A"), decl_buffer((3,), "float32", "C")
        i, ko, ki = Var("i", "int32"), Var("ko", "int32"), Var("ki", "int32")
        realize = block(
            [("vi", 3, IterVar.DataPar, i), ("vk", 8, IterVar.CommReduce, ko * 4 + ki)],
            lambda vi, vk: BufferStore(c, c[vi] + a[vi, vk], [vi]),
            lambda vi, vk: BufferStore(c, float32(0), [vi]),
        )
        loops: Stmt = realize
        for variable, extent in ((ki, 4), (ko, 2), (i, 3)):
            loops = For(variable, 0, extent, ForKind.SERIAL, loops)
        values = np.arange(24, dtype=np.float32).reshape(3, 8)
        result = np.full(3, 99, np.float32)
        interpret(PrimFunc([a, c], loops), values, result)
        assert result.tolist() == values.sum(1).tolist()

    def test_predicate(self) -> None:
        """A block does not run where its predicate is false."""
        c = decl_buffer((3,), "int32", "C")
        i = Var("i", "int32")
        realize = block([("vi", 3, 0, i)], lambda vi: BufferStore(c, vi + 1, [vi]), where=i < 3)
        result = np.zeros(3, np.int32)
        interpret(PrimFunc([c], For(i, 0, 4, ForKind.SERIAL, realize)), result)
        assert result.tolist() == [1, 2, 3]

    def test_allocated_and_matched_buffers(self) -> None:
        """A block's own buffer lives within it, and a matched buffer is a window of another."""
        out = decl_buffer((4, 4), "int32", "out")
        own = decl_buffer((4,), "int32", "own")
        column: Buffer = decl_buffer(
            (4, 1), "int32", "column", strides=[Var("s0", "int32"), Var("s1", "int32")], offset_factor=1
        )
        i, j = Var("i", "int32"), Var("j", "int32")

        def body(vj: Var) -> Stmt:
            fill = For(i, 0, 4, ForKind.SERIAL, BufferStore(own, vj * 10 + i, [i]))
            return SeqStmt([fill, For(i, 0, 4, ForKind.SERIAL, BufferStore(column, own[3 - i], [i, 0]))])

        realize = block([("vj", 4, 0, j)], body, alloc_buffers=[own])
        box = BufferRegion(
            out, (Range(0, 4), Range.from_min_extent(realize.block.iter_vars[0].var, int32(1)))
        )
        matched = realize.block.replace(match_buffers=(MatchBufferRegion(column, box),))
        program = PrimFunc([out], For(j, 0, 4, ForKind.SERIAL, BlockRealize([j], True, matched)))
        result = np.zeros((4, 4), np.int32)
        interpret(program, result)
        np.testing.assert_array_equal(result, (np.arange(4) * 10)[None, :] + np.arange(3, -1, -1)[:, None])


def threads(tag: str, extent: int, body: Any) -> AttrStmt:
    """A thread index bound around a body made from its variable."""
    axis = IterVar(None, tag.replace(".", "_"), IterVar.ThreadIndex, tag)
    return AttrStmt(axis, "thread_extent", int32(extent), body(axis.var))


def barrier() -> Evaluate:
    return Evaluate(intrinsic("tvm_storage_sync", "int32", StringImm("shared")))


class TestThreads:
    """GPU kernels."""

    def test_grid(self) -> None:
        """Every thread of every block runs once."""
        out = decl_buffer((6,), "int32", "out")
        body = threads(
            "blockIdx.x",
            3,
            lambda bx: threads("threadIdx.x", 2, lambda tx: BufferStore(out, bx * 10 + tx, [bx * 2 + tx])),
        )
        result = np.zeros(6, np.int32)
        interpret(PrimFunc([out], body), result)
        assert result.tolist() == [0, 1, 10, 11, 20, 21]

    def reverse(self, between: list[Stmt]) -> PrimFunc:
        """Each block reverses four numbers through shared memory."""
        a, out = decl_buffer((8,), "int32", "A"), decl_buffer((8,), "int32", "out")
        shared = pointer("shared", "int32", "shared")

        def kernel(bx: Var, tx: Var) -> Stmt:
            put = Store(shared, a[bx * 4 + tx], tx)
            take = BufferStore(out, Load("int32", shared, 3 - tx), [bx * 4 + tx])
            return Allocate(shared, "int32", [4], True, SeqStmt([put, *between, take]))

        body = threads("blockIdx.x", 2, lambda bx: threads("threadIdx.x", 4, lambda tx: kernel(bx, tx)))
        return PrimFunc([a, out], body)

    @pytest.mark.parametrize("between", [[], [barrier()]], ids=["before barriers", "with a barrier"])
    def test_shared_memory(self, between: list[Stmt]) -> None:
        """Threads see what others wrote before the barrier; without barriers, in an earlier statement."""
        result = np.zeros(8, np.int32)
        interpret(self.reverse(between), np.arange(8, dtype=np.int32), result)
        assert result.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]

    def test_divergent_barrier_is_an_error(self) -> None:
        """A barrier that some threads never reach would hang a device."""

        def kernel(tx: Var) -> Stmt:
            return IfThenElse(tx < 2, barrier())

        with pytest.raises(TilewrightError, match="2 of the 4 threads of a block wait at a barrier"):
            interpret(PrimFunc([], threads("threadIdx.x", 4, kernel)))

    def test_loop_around_a_barrier(self) -> None:
        """A tree reduction in shared memory: three rounds, two barriers each."""
        a, out = decl_buffer((8,), "int32", "A"), decl_buffer((1,), "int32", "out")
        shared = pointer("shared", "int32", "shared")
        step = Var("step", "int32")

        def kernel(tx: Var) -> Stmt:
            half = intrinsic("shift_right", "int32", int32(4), step)
            add = Store(shared, Load("int32", shared, tx) + Load("int32", shared, tx + half), tx)
            rounds = For(step, 0, 3, ForKind.SERIAL, SeqStmt([IfThenElse(tx < half, add), barrier()]))
            finish = IfThenElse(tx.equal(0), BufferStore(out, Load("int32", shared, 0), [0]))
            steps = SeqStmt([Store(shared, a[tx], tx), barrier(), rounds, finish])
            return Allocate(shared, "int32", [8], True, steps)

        result = np.zeros(1, np.int32)
        interpret(
            PrimFunc([a, out], threads("threadIdx.x", 8, kernel)), np.arange(1, 9, dtype=np.int32), result
        )
        assert result[0] == 36

    def test_same_index_bound_twice(self) -> None:
        """A thread index that is bound again inside a kernel is the same index; private memory spans both."""
        out = decl_buffer((4,), "int32", "out")
        private = pointer("private", "int32", "local")
        put = threads("threadIdx.x", 4, lambda tx: Store(private, tx * 7, 0))
        take = threads("threadIdx.x", 4, lambda tx: BufferStore(out, Load("int32", private, 0), [tx]))
        body = threads(
            "blockIdx.x", 1, lambda bx: Allocate(private, "int32", [1], True, SeqStmt([put, take]))
        )
        result = np.zeros(4, np.int32)
        interpret(PrimFunc([out], body), result)
        assert result.tolist() == [0, 7, 14, 21]

    def test_all_reduce(self) -> None:
        """tvm_thread_allreduce gives every thread of a row the row's sum; masked threads bring the identity."""
        a, out = decl_buffer((2, 4), "float32", "A"), decl_buffer((2, 4), "float32", "out")
        x, y = Var("x", "float32"), Var("y", "float32")
        total = CommReducer([x], [y], [x + y], [float32(0)])
        result_pointer = pointer("result", "float32", "local")

        def kernel(ty: Var, tx: Var) -> Stmt:
            call = intrinsic(
                "tvm_thread_allreduce", "handle", IntImm("uint32", 1), a[ty, tx], tx < 3, result_pointer, tx
            )
            reduce = AttrStmt(
                total, "reduce_scope", intrinsic("reinterpret", "handle", int32(0)), Evaluate(call)
            )
            store = BufferStore(out, Load("float32", result_pointer, 0), [ty, tx])
            return Allocate(result_pointer, "float32", [1], True, SeqStmt([reduce, store]))

        body = threads("threadIdx.y", 2, lambda ty: threads("threadIdx.x", 4, lambda tx: kernel(ty, tx)))
        values = np.arange(8, dtype=np.float32).reshape(2, 4)
        result = np.zeros((2, 4), np.float32)
        interpret(PrimFunc([a, out], body), values, result)
        assert result.tolist() == [[3] * 4, [15] * 4]

    def test_shuffles(self) -> None:
        """A sum over groups of four lanes by halving, then read from the first lane of each group."""
        a, out = decl_buffer((8,), "int32", "A"), decl_buffer((8,), "int32", "out")
        value = pointer("value", "int32", "local")
        mask, width, warp = IntImm("uint32", 0), int32(4), int32(8)

        def kernel(tx: Var) -> Stmt:
            steps: list[Stmt] = [Store(value, a[tx], 0)]
            for distance in (2, 1):
                args = [mask, Load("int32", value, 0), int32(distance), width, warp]
                shuffled = intrinsic("tvm_warp_shuffle_down", "int32", *args)
                steps.append(Store(value, Load("int32", value, 0) + shuffled, 0))
            args = [mask, Load("int32", value, 0), int32(0), width, warp]
            total = Var("total", "int32")
            store = BufferStore(out, total, [tx])
            steps.append(LetStmt(total, intrinsic("tvm_warp_shuffle", "int32", *args), store))
            return Allocate(value, "int32", [1], True, SeqStmt(steps))

        result = np.zeros(8, np.int32)
        interpret(
            PrimFunc([a, out], threads("threadIdx.x", 8, kernel)), np.arange(1, 9, dtype=np.int32), result
        )
        assert result.tolist() == [10] * 4 + [26] * 4

    def test_thread_loops_run_as_loops(self) -> None:
        """A loop bound to threads in a schedulable program runs serially; the thread's variable is the loop's."""
        out = decl_buffer((4,), "int32", "out")
        i = Var("i", "int32")
        axis = IterVar((0, 4), "tx", IterVar.ThreadIndex, "threadIdx.x")
        loop = For(i, 0, 4, ForKind.THREAD_BINDING, BufferStore(out, i + axis.var, [i]), axis)
        result = np.zeros(4, np.int32)
        interpret(PrimFunc([out], loop), result)
        assert result.tolist() == [0, 2, 4, 6]


@given(strategies.data())
def test_sums_and_products_wrap_as_step_by_step(data: Any) -> None:
    """A polynomial of int8 variables is what wrapping after every operation gives."""
    values = data.draw(strategies.lists(strategies.integers(-128, 127), min_size=3, max_size=3))
    variables = [Var(f"v{position}", "int8") for position in range(3)]
    expr: PrimExpr = variables[0]
    expected = np.int8(values[0])
    with np.errstate(all="ignore"):
        for make, operand in data.draw(
            strategies.lists(
                strategies.tuples(strategies.sampled_from([Add, Sub, Mul]), strategies.integers(0, 3)),
                max_size=30,
            )
        ):
            other: PrimExpr = variables[operand] if operand < 3 else Min(variables[0], IntImm("int8", 77))
            number = np.int8(values[operand]) if operand < 3 else min(np.int8(values[0]), np.int8(77))
            expr = make(expr, other)
            expected = {Add: expected + number, Sub: expected - number, Mul: expected * number}[make]
    out = decl_buffer((1,), "int8", "out")
    result = np.zeros(1, np.int8)
    interpret(PrimFunc([*variables, out], BufferStore(out, expr, [0])), *values, result)
    assert result[0] == expected
