"""The interpreter: what each expression computes, and what a faulty one gets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies
from tests.tir.interpreter.programs import evaluate, float32, int32, intrinsic, pointer

from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import (
    Add,
    And,
    Broadcast,
    BufferLoad,
    Cast,
    Div,
    FloatImm,
    FloorDiv,
    FloorMod,
    IntImm,
    Load,
    Max,
    Min,
    Mod,
    Mul,
    PrimExpr,
    Ramp,
    Select,
    Shuffle,
    Sub,
    Var,
)
from tilewright.support.errors import TilewrightError
from tilewright.tir.function import PrimFunc
from tilewright.tir.interpreter import interpret
from tilewright.tir.stmt import (
    BufferStore,
    For,
    ForKind,
    Store,
)


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

    @pytest.mark.parametrize(
        ("kind", "expected"),
        [(FloorDiv, -3), (Div, -3), (FloorMod, 0), (Mod, 0)],
        ids=lambda value: str(value),
    )
    def test_division_by_zero(self, kind: Any, expected: int) -> None:
        """A divisor of zero counts as one, as in compiled code."""
        x = Var("x", "int32")
        out = decl_buffer((1,), "int32", "out")
        result = np.full(1, 7, "int32")
        interpret(PrimFunc([x, out], BufferStore(out, kind(int32(-3), x), [0])), 0, result)
        assert result[0] == expected

    def test_float32_rounds_like_float32(self) -> None:
        """Neither a wider accumulator nor a fused product hides in an expression."""
        a, b, c = np.float32(1.0000001), np.float32(3.0000002), np.float32(-3.0)
        expr = Add(Mul(float32(a), float32(b)), float32(c))
        assert evaluate(expr) == np.float32(np.float32(a * b) + c)
        assert evaluate(Div(float32(1), float32(0))) == np.inf

    def test_float16_rounds_like_float16(self) -> None:
        """2049 is not a half-precision number."""
        assert evaluate(Add(FloatImm("float16", 2048), FloatImm("float16", 1))) == np.float16(2048)

    def test_bfloat16_rounds_to_nearest_even(self) -> None:
        """A bfloat16 has eight significant bits: 256 + 1 is halfway and goes to the even neighbour."""
        one, big = FloatImm("bfloat16", 1), FloatImm("bfloat16", 256)
        assert evaluate(Add(big, one)) == 0x4380
        assert evaluate(Add(big, Add(Add(one, one), one))) == 0x4382

    def test_min_and_max_with_nan(self) -> None:
        """A NaN on either side comes out."""
        nan = float32(float("nan"))
        assert np.isnan(evaluate(Min(nan, float32(2)))) and np.isnan(evaluate(Min(float32(2), nan)))
        assert np.isnan(evaluate(Max(nan, float32(2)))) and np.isnan(evaluate(Max(float32(2), nan)))

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

    def test_shifts_out_of_range(self) -> None:
        """All bits are moved out; of a signed number the sign is left."""
        for count in (32, 1000, -1):
            assert evaluate(intrinsic("shift_left", "int32", int32(1), int32(count))) == 0
            assert evaluate(intrinsic("shift_right", "int32", int32(-5), int32(count))) == -1

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
