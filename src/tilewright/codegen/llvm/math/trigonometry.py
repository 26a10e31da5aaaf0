"""sin, cos and tan in float32.

``x = n * pi/2 + r``. Up to 2**17 the multiple is subtracted in three parts with FMA (in float64 where there is no FMA),
without loss. If any lane is larger, the product with 2/pi is formed from the 96 significant bits of 2/pi (Payne-Hanek
reduction), so that the result is as accurate for 1e38 as for 1.
"""

from __future__ import annotations

from tilewright.codegen.llvm.math.block import Block, Value
from tilewright.codegen.llvm.math.exponential import round_to_integer

_LIMIT = 131072.0
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI_PARTS = (1.5707963705062866, -4.371139000186241e-08, -1.7151245100058819e-15)
_HALF_PI_DOUBLE = (1.57079632673412561417e00, 6.07710050650619224932e-11)
_HALF_PI = 1.5707963267948966
# The bits of 2/pi, 32 to a word, after a word of zeros.
_WORDS = (0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB)

_SIN = (2.724962087086169e-06, -0.00019840084132738411, 0.008333331905305386, -0.1666666716337204)
_COS = (-2.7300703209220956e-07, 2.4800598112051375e-05, -0.00138888880610466, 0.0416666679084301)
_TAN = (
    0.003847305430099368, 0.001178298145532608, 0.00996654573827982, 0.021619873121380806,
    0.05399462580680847, 0.133332297205925, 0.3333333432674408,
)  # fmt: skip


def _signed(word: int) -> int:
    """A 32-bit word as LLVM prints it."""
    return word - (1 << 32) if word >> 31 else word


def reduce(block: Block, x: Value) -> tuple[Value, Value]:
    """``n`` (modulo four, as an integer) and ``r``."""
    quadrant, r = _reduce_moderate(block, x)
    large = (x.absolute() <= _LIMIT) ^ 1
    quadrant, r = block.unless_all_false(large, [quadrant, r], lambda: _merge(block, large, x, quadrant, r))
    # Infinity minus itself is NaN, which infinities and NaN must give; zero leaves the others alone.
    return quadrant, r + (x - x)


def _merge(block: Block, large: Value, x: Value, quadrant: Value, r: Value) -> list[Value]:
    far_quadrant, far_r = _reduce_large(block, x)
    return [block.select(large, far_quadrant, quadrant), block.select(large, far_r, r)]


def _reduce_moderate(block: Block, x: Value) -> tuple[Value, Value]:
    quadrant, whole = round_to_integer(block, x, _TWO_OVER_PI)
    if block.has_fma:
        r = x
        for part in _HALF_PI_PARTS:
            r = block.fma(whole, -part, r)
        return quadrant, r
    wide, count = x.to_float("double"), whole.to_float("double")
    rest = (wide - count * _HALF_PI_DOUBLE[0]) - count * _HALF_PI_DOUBLE[1]
    return quadrant, rest.to_float("float")


def _reduce_large(block: Block, x: Value) -> tuple[Value, Value]:
    """The product of the 24-bit mantissa with 96 bits of 2/pi, in units of 2**-62."""
    bits = x.bits()
    exponent = (bits.shift_right(23) & 0xFF) - 150
    mantissa = ((bits & 0x7FFFFF) | 0x800000).zero_extend("i64")
    position = exponent + 30
    word, shift = position.shift_right_signed(5), position & 31
    picked = []
    for offset in range(4):
        chosen = block.constant("i32", _signed(_WORDS[offset]))
        for index in range(1, 5):
            chosen = block.select(word.equals(index), _signed(_WORDS[index + offset]), chosen)
        picked.append(chosen)
    high, middle, low = (
        block.intrinsic("fshl", picked[i], picked[i + 1], shift).zero_extend("i64") for i in range(3)
    )
    product = (mantissa * high).shift_left(32) + mantissa * middle + (mantissa * low).shift_right(32)
    quadrant = (product + (1 << 61)).shift_right(62)
    fraction = product - quadrant.shift_left(62)
    r = (fraction.to_float("double") * (_HALF_PI * 2.0**-62)).to_float("float")
    quadrant = quadrant.to_integer("i32")
    negative = x < 0.0
    return block.select(negative, -quadrant, quadrant), block.select(negative, -r, r)


def _sine_polynomial(block: Block, r: Value) -> Value:
    square = r * r
    return block.multiply_add(block.polynomial(square, _SIN), square * r, r)


def _cosine_polynomial(block: Block, r: Value) -> Value:
    square = r * r
    return block.multiply_add(block.polynomial(square, (*_COS, -0.5)), square, 1.0)


def _choose(block: Block, quadrant: Value, r: Value) -> Value:
    """sin(n * pi/2 + r)."""
    odd = (quadrant & 1).differs(0)
    value = block.select(odd, _cosine_polynomial(block, r), _sine_polynomial(block, r))
    sign = (quadrant & 2).shift_left(30)
    return (value.bits() ^ sign).bitcast("float")


def sin(block: Block, x: Value) -> Value:
    """The sine."""
    quadrant, r = reduce(block, x)
    return block.select(x.equals(0.0), x, _choose(block, quadrant, r))


def cos(block: Block, x: Value) -> Value:
    """The cosine."""
    quadrant, r = reduce(block, x)
    return _choose(block, quadrant + 1, r)


def tan(block: Block, x: Value) -> Value:
    """The tangent."""
    quadrant, r = reduce(block, x)
    square = r * r
    value = block.multiply_add(block.polynomial(square, _TAN), square * r, r)
    odd = (quadrant & 1).differs(0)
    result = block.select(odd, -1.0, value) / block.select(odd, value, 1.0)
    return block.select(x.equals(0.0), x, result)
