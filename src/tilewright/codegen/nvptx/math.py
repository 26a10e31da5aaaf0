"""The math functions of GPUs, with their largest errors.

Where the special-function unit helps, these are its instructions with corrections; the others are the vector library's.
float16 and bfloat16 are computed in float32, by shorter versions (``*_half``) whose error their rounding hides.
Denormal numbers are numbers everywhere, except in the ``*_half`` versions, where results below 2**-126 are zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tilewright.codegen.llvm.math import library
from tilewright.codegen.llvm.math.block import Block, Value
from tilewright.codegen.llvm.math.library import Function
from tilewright.codegen.llvm.math.special import ERF_FAR, ERF_NEAR

_LOG2_E: Final = 1.4426950408889634
_LOG2_E_SINGLE: Final = 1.44269502162933349609375
_LOG2_E_REST: Final = 1.925963033500571e-08
_LN_2: Final = 0.6931471805599453
_LIMIT: Final = 200.0
"""exp of more is infinite, of less than its negative zero."""
_TANH_SMALL: Final = 0.55
_TANH: Final = (
    -0.006056752987205982,
    0.020908549427986145,
    -0.05380970984697342,
    0.13332140445709229,
    -0.33333301544189453,
)
_STEP_LIMIT: Final = 2.0**52
_ERF_END: Final = 4.0
"""erf is 1 from here on, in float32."""
_ERF_FAR: Final = tuple([-_LOG2_E * one for one in ERF_FAR])
"""log2(erfc(x))."""
_ERF: Final = (-0.00161518995, 0.10364088416, 1.12831389904)
"""atanh(erf(x)) / x in powers of the square of x."""
_ERF_LIMIT: Final = 16.0
"""The square beyond which the polynomial turns around; tanh is 1 from there on."""
_HALF: Final = frozenset({"exp", "sigmoid", "tanh", "log", "erf"})


def _each(block: Block, name: str, x: Value) -> Value:
    """An NVVM intrinsic, which takes one number, on each lane."""
    if block.lanes == 1:
        return block.emit(x.element, f"call {x.element} @llvm.nvvm.{name}({x.element} {x.operand})")
    kind, made = block.type_name(x.element), "poison"
    for lane in range(block.lanes):
        one = block.function.value(f"extractelement {kind} {x.operand}, i64 {lane}")
        one = block.function.value(f"call {x.element} @llvm.nvvm.{name}({x.element} {one})")
        made = block.function.value(f"insertelement {kind} {made}, {x.element} {one}, i64 {lane}")
    return block.value(x.element, made)


def exp(block: Block, x: Value) -> Value:
    """2**(x log2 e): the product in two parts, the second of which corrects the power of the first."""
    x = block.intrinsic("maximum", block.intrinsic("minimum", x, x.lift(_LIMIT)), x.lift(-_LIMIT))
    high = x * _LOG2_E_SINGLE
    low = block.fma(x, _LOG2_E_REST, block.fma(x, _LOG2_E_SINGLE, -high))
    return _each(block, "ex2.approx.f", high) * block.fma(low, _LN_2, 1.0)


def exp2(block: Block, x: Value) -> Value:
    """The hardware's."""
    return _each(block, "ex2.approx.f", x)


def sigmoid(block: Block, x: Value) -> Value:
    """1 / (1 + exp(-x)), also where exp(-x) would overflow."""
    tail = exp(block, -x.absolute())
    return block.select(x < 0.0, tail, 1.0) / (tail + 1.0)


def tanh(block: Block, x: Value) -> Value:
    """An odd polynomial near zero; 1 - 2 / (exp(2 |x|) + 1) beyond, where the difference loses nothing."""
    size = x.absolute()
    power = _each(block, "ex2.approx.ftz.f", size * (2 * _LOG2_E))
    far = block.fma(_each(block, "rcp.approx.ftz.f", power + 1.0), -2.0, 1.0)
    square = x * x
    near = block.fma(block.polynomial(square, _TANH) * square, x, x)
    return block.select(size < _TANH_SMALL, near, far.copysign(x))


def erf(block: Block, x: Value) -> Value:
    """In two ranges, as the vector library's. Above one, the power of two is at most 0.16, and what the hardware's is
    off by is below the rounding of the difference."""
    size = x.absolute()
    near = block.fma(block.polynomial(x * x, ERF_NEAR), x, x)
    logarithm = block.polynomial(block.intrinsic("minimum", size, x.lift(_ERF_END)), _ERF_FAR)
    far = (1.0 - _each(block, "ex2.approx.ftz.f", logarithm)).copysign(x)
    return block.select(size < 1.0, near, far)


def rsqrt(block: Block, x: Value) -> Value:
    """The hardware's."""
    return _each(block, "rsqrt.approx.f", x)


def rsqrt_double(block: Block, x: Value) -> Value:
    """1 / sqrt(x)."""
    return 1.0 / block.intrinsic("sqrt", x)


def exp_half(block: Block, x: Value) -> Value:
    """Within 2**-15 of exp for results that float16 has."""
    return _each(block, "ex2.approx.ftz.f", x * _LOG2_E)


def sigmoid_half(block: Block, x: Value) -> Value:
    """Like ``exp_half``."""
    return _each(block, "rcp.approx.ftz.f", exp_half(block, -x) + 1.0)


def tanh_half(block: Block, x: Value) -> Value:
    """The hardware's, within 2**-11 of the result."""
    return _each(block, "tanh.approx.f32", x)


def erf_half(block: Block, x: Value) -> Value:
    """tanh of an odd polynomial: within 2**-14 of erf, and what the hardware's tanh adds."""
    square = block.intrinsic("minimum", x * x, x.lift(_ERF_LIMIT))
    return tanh_half(block, block.polynomial(square, _ERF) * x)


def log_half(block: Block, x: Value) -> Value:
    """Within 2**-22 of log."""
    return _each(block, "lg2.approx.f", x) * _LN_2


def fmod(block: Block, x: Value, y: Value) -> Value:
    """The remainder with the sign of x, exact: a quotient below 2**52 is found in one step of float64, a larger one in
    steps that each take 52 bits off it."""
    first, divisor = x.to_float("double").absolute(), y.to_float("double").absolute()

    def step(rest: Value) -> Value:
        quotient = block.intrinsic("trunc", rest / divisor)
        # The quotient was rounded, so that the rest may be a little below zero, or not below the divisor.
        rest = block.fma(quotient, -divisor, rest)
        rest = block.select(rest < 0.0, rest + divisor, rest)
        return block.select(rest < divisor, rest, rest - divisor)

    rest = step(first)
    large = (first / divisor) >= _STEP_LIMIT
    large = large & first.differs(float("inf"))

    def more() -> list[Value]:
        found = rest
        for _ in range(5):
            found = step(found)
        return [found]

    (rest,) = block.unless_all_false(large, [rest], more)
    infinite = divisor.equals(float("inf")) & first.differs(float("inf")) & (first.is_nan() ^ 1)
    rest = block.select(infinite, first, rest)
    undefined = first.equals(float("inf")) | divisor.equals(0.0) | x.is_nan() | y.is_nan()
    rest = block.select(undefined, float("nan"), rest)
    return rest.to_float(x.element).copysign(x)


FUNCTIONS: Final[Mapping[str, Function]] = {
    **library.FUNCTIONS,
    "exp": Function(exp, 3.0, library.FUNCTIONS["exp"].double, 1.0),
    "exp2": Function(exp2, 2.5, library.FUNCTIONS["exp2"].double, 1.5),
    "sigmoid": Function(sigmoid, 4.5, library.FUNCTIONS["sigmoid"].double, 2.5),
    "tanh": Function(tanh, 3.0, library.FUNCTIONS["tanh"].double, 2.5),
    "erf": Function(erf, 2.5, library.FUNCTIONS["erf"].double, 1.0),
    "rsqrt": Function(rsqrt, 2.0, rsqrt_double, 1.5),
    "fmod": Function(fmod, 0.5, fmod, 0.5, 2),
    # Errors of these are in units of float16, after rounding.
    "exp_half": Function(exp_half, 1.0, None),
    "sigmoid_half": Function(sigmoid_half, 1.0, None),
    "tanh_half": Function(tanh_half, 1.5, None),
    "erf_half": Function(erf_half, 1.6, None),
    "log_half": Function(log_half, 1.0, None),
}


def half_name(name: str) -> str:
    """The function that computes ``name`` for float16 and bfloat16."""
    return f"{name}_half" if name in _HALF else name
