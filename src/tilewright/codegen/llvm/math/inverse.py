"""asin, acos, atan and atan2 in float32."""

from __future__ import annotations

from tilewright.codegen.llvm.math.block import Block, Value

_ASIN = (
    0.03808502480387688, 0.026554541662335396, 0.045001380145549774, 0.07498855143785477, 0.16666673123836517,
)  # fmt: skip
_ATAN = (
    -0.0023869972210377455, 0.01350777130573988, -0.035871539264917374, 0.0625016912817955, -0.08656880259513855,
    0.11033764481544495, -0.1427856832742691, 0.19999739527702332, -0.3333333134651184,
)  # fmt: skip
_HALF_PI, _HALF_PI_LOW = 1.5707963705062866, -4.371139000186241e-08
_PI, _PI_LOW = 3.1415927410125732, -8.742278000372483e-08
_INFINITY = float("inf")


def _asin_parts(block: Block, x: Value) -> tuple[Value, Value]:
    """Whether the magnitude is above a half, and asin of it (or, above, asin of sqrt((1 - a) / 2))."""
    size = x.absolute()
    above = size > 0.5
    square = block.select(above, (1.0 - size) * 0.5, size * size)
    root = block.select(above, block.intrinsic("sqrt", square), size)
    return above, block.multiply_add(root * square, block.polynomial(square, _ASIN), root)


def asin(block: Block, x: Value) -> Value:
    """The inverse of the sine; NaN outside [-1, 1]."""
    above, part = _asin_parts(block, x)
    reflected = (_HALF_PI - (part + part)) + _HALF_PI_LOW
    return block.select(above, reflected, part).copysign(x)


def acos(block: Block, x: Value) -> Value:
    """The inverse of the cosine; NaN outside [-1, 1]."""
    above, part = _asin_parts(block, x)
    double = part + part
    outer = block.select(x < 0.0, (_PI - double) + _PI_LOW, double)
    signed = part.copysign(x)
    inner = _HALF_PI - (signed - _HALF_PI_LOW)
    return block.select(above, outer, inner)


def _atan_polynomial(block: Block, t: Value) -> Value:
    """atan(t) for |t| <= 1."""
    square = t * t
    return block.multiply_add(block.polynomial(square, _ATAN), square * t, t)


def atan(block: Block, x: Value) -> Value:
    """The inverse of the tangent."""
    size = x.absolute()
    above = size > 1.0
    t = block.select(above, -1.0, size) / block.select(above, size, 1.0)
    part = _atan_polynomial(block, t)
    return block.select(above, (part + _HALF_PI_LOW) + _HALF_PI, part).copysign(x)


def atan2(block: Block, y: Value, x: Value) -> Value:
    """The angle of the point (x, y), with C's values at zeros and infinities."""
    across, up = x.absolute(), y.absolute()
    steep = up > across
    low, high = block.select(steep, across, up), block.select(steep, up, across)
    ratio = low / high
    ratio = block.select(low.equals(high), 1.0, ratio)
    ratio = block.select(high.equals(0.0), 0.0, ratio)
    part = _atan_polynomial(block, ratio)
    part = block.select(steep, (_HALF_PI - part) + _HALF_PI_LOW, part)
    left = (x.bits()) < 0
    part = block.select(left, (_PI - part) + _PI_LOW, part)
    result = part.copysign(y)
    return block.select(x.is_nan() | y.is_nan(), x + y, result)
