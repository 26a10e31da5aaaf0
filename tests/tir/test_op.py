"""Functions that build expressions."""

import math

import pytest

from tilewright import tir
from tilewright.ir.buffer import decl_buffer
from tilewright.ir.expr import And, Call, FloatImm, IntImm, IterVar, Or, Reduce, Select, StringImm, Var
from tilewright.support.errors import ExpressionError, OpError
from tilewright.tir import reducer

x, y = Var("x"), Var("y")
f, g, h = Var("f", "float32"), Var("g", "float32"), Var("h", "float16")

UNARY = [
    *(tir.exp, tir.exp2, tir.exp10, tir.erf, tir.tanh, tir.sigmoid, tir.log, tir.log2, tir.log10, tir.log1p),
    *(
        tir.tan,
        tir.cos,
        tir.cosh,
        tir.acos,
        tir.acosh,
        tir.sin,
        tir.sinh,
        tir.asin,
        tir.asinh,
        tir.atan,
        tir.atanh,
    ),
    *(tir.sqrt, tir.rsqrt),
]


@pytest.mark.parametrize("function", UNARY)
def test_unary_functions(function: object) -> None:
    """A function of a float is a call of the intrinsic of its name, in the type of its argument."""
    for argument in (f, h, Var("v", "float32x4")):
        made = function(argument)  # type: ignore[operator]
        assert isinstance(made, Call) and made.dtype == argument.dtype
        assert made.op.name == f"tir.{function.__name__}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("function", UNARY)
def test_functions_of_integers_are_refused(function: object) -> None:
    """An integer is not converted silently."""
    with pytest.raises(
        ExpressionError, match=r"takes a floating-point number, not int32: x; convert it with \.astype"
    ):
        function(x)  # type: ignore[operator]


@pytest.mark.parametrize("function", [tir.atan2, tir.hypot, tir.nextafter, tir.copysign, tir.fmod, tir.power])
def test_binary_functions(function: object) -> None:
    """Two floats meet in one type; two integers are refused."""
    assert function(f, 2).dtype == "float32"  # type: ignore[operator]
    assert function(h, g).dtype == "float32"  # type: ignore[operator]
    with pytest.raises(ExpressionError, match="takes a floating-point number"):
        function(x, 2)  # type: ignore[operator]


def test_ldexp_and_fma() -> None:
    """The exponent of ldexp is an integer; fma brings three operands to one type."""
    assert tir.ldexp(f, x).dtype == "float32"
    with pytest.raises(ExpressionError, match="exponent of ldexp is an integer"):
        tir.ldexp(f, g)
    made = tir.fma(h, 2.0, g)
    assert made.dtype == "float32" and all(argument.dtype == "float32" for argument in made.args)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (tir.floor, [-3.0, -2.0, 0.0, 2.0, 2.0, 3.0]),
        (tir.ceil, [-2.0, -1.0, 1.0, 3.0, 3.0, 4.0]),
        (tir.trunc, [-2.0, -1.0, 0.0, 2.0, 2.0, 3.0]),
        (tir.round, [-3.0, -2.0, 1.0, 2.0, 3.0, 4.0]),
        (tir.nearbyint, [-2.0, -2.0, 0.0, 2.0, 2.0, 4.0]),
    ],
)
def test_rounding_folds(function: object, expected: list[float]) -> None:
    """Rounding functions round constants as the machine does; round goes away from zero halfway, nearbyint to even."""
    values = [-2.5, -1.5, 0.5, 2.1, 2.5, 3.5]
    assert [function(tir.const(value)).value for value in values] == expected  # type: ignore[operator]
    assert function(x) is x  # type: ignore[operator]
    assert math.isinf(function(tir.const(math.inf)).value)  # type: ignore[operator]
    assert isinstance(function(f), Call)  # type: ignore[operator]


def test_round_of_almost_half() -> None:
    """The largest number below one half rounds to zero."""
    assert tir.round(FloatImm("float64", 0.49999999999999994)).value == 0.0  # type: ignore[attr-defined]


def test_rounding_keeps_the_sign_of_zero() -> None:
    """A negative number that rounds to zero gives minus zero."""
    assert math.copysign(1.0, tir.ceil(tir.const(-0.5)).value) == -1.0  # type: ignore[attr-defined]
    assert math.copysign(1.0, tir.floor(tir.const(0.5)).value) == 1.0  # type: ignore[attr-defined]


def test_abs() -> None:
    """The magnitude of an integer is a select, of a float an intrinsic; constants fold, unsigned stay."""
    assert isinstance(tir.abs(x), Select)
    assert tir.abs(f).op.name == "tir.fabs"  # type: ignore[attr-defined]
    assert tir.abs(tir.const(-3)).value == 3 and tir.abs(tir.const(-1.5)).value == 1.5  # type: ignore[attr-defined]
    unsigned = Var("u", "uint8")
    assert tir.abs(unsigned) is unsigned


def test_classification() -> None:
    """Integers are finite numbers; constants fold; the rest is a test of one lane each."""
    assert (tir.isnan(x).value, tir.isinf(x).value, tir.isfinite(x).value) == (0, 0, 1)  # type: ignore[attr-defined]
    for value, nan, infinite in ((math.nan, 1, 0), (-math.inf, 0, 1), (1.0, 0, 0)):
        constant = tir.const(value)
        assert tir.isnan(constant).value == nan  # type: ignore[attr-defined]
        assert tir.isinf(constant).value == infinite  # type: ignore[attr-defined]
        assert tir.isfinite(constant).value == (not nan and not infinite)  # type: ignore[attr-defined]
    assert tir.isnan(Var("v", "float32x4")).dtype == "boolx4" and tir.isinf(f).dtype == "bool"


def test_bits() -> None:
    """Counting bits is for integers; leading zeros are counted in an int32."""
    assert tir.popcount(Var("u", "uint8")).dtype == "uint8" and tir.clz(Var("l", "int64")).dtype == "int32"
    assert tir.q_multiply_shift(x, 5, 31, 2).dtype == "int32"
    with pytest.raises(ExpressionError, match="popcount takes an integer"):
        tir.popcount(f)


def test_logic() -> None:
    """any and all combine conditions; one condition is itself, none is an error."""
    assert isinstance(tir.any(x < 1, y < 1, x < y), Or) and isinstance(tir.all(x < 1, y < 1), And)
    condition = x < 1
    assert tir.all(condition) is condition
    with pytest.raises(ExpressionError, match="needs one condition"):
        tir.any()


def test_if_then_else() -> None:
    """The values meet in one type; a constant condition decides; the condition is a bool."""
    made = tir.if_then_else(x < 1, f, 2)
    assert made.dtype == "float32" and made.op.name == "tir.if_then_else"  # type: ignore[attr-defined]
    assert tir.if_then_else(True, x, y) is x and tir.if_then_else(False, x, y) is y
    with pytest.raises(ExpressionError, match="condition of if_then_else is a bool"):
        tir.if_then_else(x, 1, 2)


def test_external_calls() -> None:
    """Names come first; buffers are passed as pointers, to packed functions as tensors."""
    buffer = decl_buffer((4, 8), "float32", name="A")
    made = tir.call_extern("int32", "gemm", buffer, 3)
    assert isinstance(made.args[0], StringImm) and made.args[1] is buffer.data
    packed = tir.call_packed("sort", buffer, x)
    assert packed.args[1].op.name == "tir.tvm_stack_make_array" and packed.dtype == "int32"  # type: ignore[attr-defined]
    assert [str(argument) for argument in packed.args[1].args[3:]] == ["2", "0.0", "0"]  # type: ignore[attr-defined]
    assert tir.call_pure_extern("float32", "sinf", f).op.name == "tir.call_pure_extern"
    assert tir.call_intrin("float32", "tir.exp", f).op.name == "tir.exp"
    with pytest.raises(OpError):
        tir.call_intrin("float32", "tir.nonsense", f)


def test_llvm_calls() -> None:
    """An LLVM intrinsic has its name and the number of its overloaded arguments."""
    made = tir.call_llvm_pure_intrin("float32", "llvm.fma", tir.const(1, "uint32"), f, f, f)
    assert [str(argument) for argument in made.args[:2]] == ['"llvm.fma"', "T.uint32(1)"]
    with pytest.raises(ExpressionError, match=r"a name such as llvm\.fma"):
        tir.call_llvm_intrin("float32", "fma", 1)
    with pytest.raises(ExpressionError, match="first argument"):
        tir.call_llvm_intrin("float32", "llvm.fma", f)


def test_special_calls() -> None:
    """Returning, tracing, likelihood and reinterpretation."""
    assert tir.ret(x).op.name == "tir.ret" and tir.trace([x, f]).dtype == "float32"
    assert tir.likely(x < 1).op.name == "tir.likely"  # type: ignore[attr-defined]
    assert isinstance(tir.likely(tir.const(True)), IntImm)
    assert tir.reinterpret("int32", f).dtype == "int32" and tir.reinterpret("int32", x) is x
    with pytest.raises(ExpressionError, match="differ in size"):
        tir.reinterpret("int64", f)
    with pytest.raises(ExpressionError, match="list of the values"):
        tir.trace([])


def test_division_by_name() -> None:
    """Division functions round as their names say; indices use floor division."""
    assert tir.truncdiv(-7, 2).value == -3 and tir.floordiv(-7, 2).value == -4  # type: ignore[attr-defined]
    assert str(tir.indexdiv(x, 4)) == "x // 4" and str(tir.indexmod(x, 4)) == "x % 4"
    assert str(tir.div(x, 4)) == "T.truncdiv(x, 4)"


def test_reducers() -> None:
    """sum, min and max reduce over axes, with a condition and a start value, or combine two values."""
    k = IterVar((0, 8), "k", IterVar.CommReduce)
    total = tir.sum(f, axis=k, where=x < 1)
    assert isinstance(total, Reduce) and str(total.condition) == "x < 1"
    assert str(total.combiner.result[0]) == "x + y" and total.combiner.identity_element[0].value == 0  # type: ignore[attr-defined]
    assert tir.max(x, axis=[k]).combiner.identity_element[0].value == -(2**31)
    assert tir.min(f, axis=k, init=1.0).init[0].value == 1.0
    assert str(tir.max(x, y)) == "T.max(x, y)" and str(tir.min(x, y, 3)) == "T.min(T.min(x, y), 3)"


def test_tuple_reducers() -> None:
    """A reducer of pairs gives one reduction for each value, with variables named after its parameters."""
    k = IterVar((0, 8), "k", IterVar.CommReduce)

    def argmax(lhs: tuple[Var, Var], rhs: tuple[Var, Var]) -> tuple[object, object]:
        return Select(lhs[1] >= rhs[1], lhs[0], rhs[0]), Select(lhs[1] >= rhs[1], lhs[1], rhs[1])

    reduce = tir.comm_reducer(
        argmax, lambda index, value: (tir.const(-1, index), tir.min_value(value)), name="argmax"
    )
    index, value = reduce((k.var, f), axis=k)
    assert (index.value_index, value.value_index) == (0, 1) and (index.dtype, value.dtype) == (
        "int32",
        "float32",
    )
    assert [var.name for var in index.combiner.lhs] == ["lhs_0", "lhs_1"] and index.combiner is value.combiner


def test_reducers_check_their_arguments() -> None:
    """Axes must be reduction axes, and the functions of a reducer must fit."""
    k, i = IterVar((0, 8), "k", IterVar.CommReduce), IterVar((0, 8), "i", IterVar.DataPar)
    with pytest.raises(ExpressionError, match=r"axes made by te\.reduce_axis"):
        reducer.sum(f, axis=i)
    with pytest.raises(ExpressionError, match="one axis or more"):
        reducer.sum(f, axis=[])
    with pytest.raises(ExpressionError, match="constant or an element"):
        reducer.sum(f, axis=k, init=f)
    with pytest.raises(ExpressionError, match="turns int32 into float32"):
        tir.comm_reducer(lambda a, b: (a + b).astype("float32"), lambda t: tir.const(0, t))(x, axis=k)
    with pytest.raises(ExpressionError, match="takes two arguments"):
        tir.comm_reducer(lambda a: a, lambda t: tir.const(0, t))(x, axis=k)
    with pytest.raises(ExpressionError, match="gives 1 values, 2 are reduced"):
        tir.comm_reducer(lambda a, b: a[0], lambda s, t: (0, 0))((x, y), axis=k)


def test_quotients_by_the_names_of_their_operands() -> None:
    """The operands of quotients and remainders are a and b."""
    x = Var("x")
    for function in (
        tir.div,
        tir.truncdiv,
        tir.truncmod,
        tir.floordiv,
        tir.floormod,
        tir.indexdiv,
        tir.indexmod,
    ):
        made = function(a=x, b=3)
        assert made.a is x and made.b.value == 3


def test_rounding_folds_the_number_that_the_type_has() -> None:
    """A constant that is zero in its type is not rounded up to one."""
    for function in (tir.ceil, tir.round, tir.trunc):
        made = function(FloatImm("float16", 1e-30))
        assert isinstance(made, FloatImm) and made.value == 0
    below = tir.floor(FloatImm("float16", -1e-30))
    assert isinstance(below, FloatImm) and math.copysign(1, below.value) == -1 and below.value == 0
