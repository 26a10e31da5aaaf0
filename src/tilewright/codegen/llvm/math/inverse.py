"""asin, acos, atan and atan2."""

from __future__ import annotations

from tilewright.codegen.llvm.math.block import Block, Value

_ASIN = {
    "float": (
        0.03808502480387688, 0.026554541662335396, 0.045001380145549774, 0.07498855143785477, 0.16666673123836517,
    ),
    "double": (
        0.028757851367602328, -0.014851887071528912, 0.01740087944288715, 0.005457506718563782, 0.0103228143502052,
        0.011479177415181617, 0.013971212973553311, 0.017352392720869945, 0.02237217294214989, 0.030381944138531247,
        0.04464285714635543, 0.07499999999998433, 0.16666666666666669,
    ),
}  # fmt: skip
_ATAN = (
    -0.0023869972210377455, 0.01350777130573988, -0.035871539264917374, 0.0625016912817955, -0.08656880259513855,
    0.11033764481544495, -0.1427856832742691, 0.19999739527702332, -0.3333333134651184,
)  # fmt: skip
_ATAN_64 = (
    0.016284375049956695, -0.034569315063240416, 0.0455154473401848, -0.05230443640686046, 0.05878927554473668,
    -0.06666424760200507, 0.07692296368042296, -0.09090908753259112, 0.11111111105150588, -0.14285714285659779,
    0.19999999999999804, -0.3333333333333333,
)  # fmt: skip
_TAN_EIGHTH_PI = 0.41421356237309503
_HALF_PI = {
    "float": (1.5707963705062866, -4.371139000186241e-08),
    "double": (1.5707963267948966, 6.123233995736766e-17),
}
_INFINITY = float("inf")


def _asin_parts(block: Block, x: Value) -> tuple[Value, Value]:
    """Whether the magnitude is above a half, and asin of it (or, above, asin of sqrt((1 - a) / 2))."""
    size = x.absolute()
    above = size > 0.5
    square = block.select(above, (1.0 - size) * 0.5, size * size)
    root = block.select(above, block.intrinsic("sqrt", square), size)
    return above, block.multiply_add(root * square, block.polynomial(square, _ASIN[x.element]), root)


def asin(block: Block, x: Value) -> Value:
    """The inverse of the sine; NaN outside [-1, 1]."""
    above, part = _asin_parts(block, x)
    high, low = _HALF_PI[x.element]
    reflected = (high - (part + part)) + low
    return block.select(above, reflected, part).copysign(x)


def acos(block: Block, x: Value) -> Value:
    """The inverse of the cosine; NaN outside [-1, 1]."""
    above, part = _asin_parts(block, x)
    high, low = _HALF_PI[x.element]
    double = part + part
    outer = block.select(x < 0.0, (2 * high - double) + 2 * low, double)
    signed = part.copysign(x)
    inner = high - (signed - low)
    return block.select(above, outer, inner)


def _atan_to_one(block: Block, t: Value) -> Value:
    """atan(t) for t between zero and one; in float64, above the tangent of pi/8, pi/4 and what is beyond."""
    if t.element == "float":
        square = t * t
        return block.multiply_add(block.polynomial(square, _ATAN), square * t, t)
    beyond = t > _TAN_EIGHTH_PI
    u = block.select(beyond, (t - 1.0) / (t + 1.0), t)
    square, (high, low) = u * u, _HALF_PI["double"]
    shifted = u + block.select(beyond, u.lift(low / 2), 0.0)
    part = block.multiply_add(block.polynomial(square, _ATAN_64), square * u, shifted)
    return block.select(beyond, part + high / 2, part)


def atan(block: Block, x: Value) -> Value:
    """The inverse of the tangent."""
    size = x.absolute()
    above = size > 1.0
    part = _atan_to_one(block, block.select(above, 1.0, size) / block.select(above, size, 1.0))
    high, low = _HALF_PI[x.element]
    return block.select(above, (low - part) + high, part).copysign(x)


def atan2(block: Block, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), with C's values at zeros and infinities."""
    across, up = x.absolute(), y.absolute()
    steep = up > across
    short, long = block.select(steep, across, up), block.select(steep, up, across)
    ratio = short / long
    ratio = block.select(short.equals(long), 1.0, ratio)
    ratio = block.select(long.equals(0.0), 0.0, ratio)
    part = _atan_to_one(block, ratio)
    high, low = _HALF_PI[x.element]
    part = block.select(steep, (high - part) + low, part)
    left = (x.bits()) < 0
    part = block.select(left, (2 * high - part) + 2 * low, part)
    result = part.copysign(y)
    return block.select(x.is_nan() | y.is_nan(), x + y, result)
