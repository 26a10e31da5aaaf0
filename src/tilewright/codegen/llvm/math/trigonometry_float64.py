"""sin, cos and tan in float64.

``x = n * pi/2 + r``, where ``r`` is a pair, because a float64 next to a multiple of pi/2 leaves too few bits of one
number. Up to 2**20 quarter turns, three parts of pi/2 have so few bits that their products with ``n`` are exact. If any
lane is larger, its mantissa is multiplied by those 192 bits of 2/pi that matter (Payne-Hanek reduction).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tilewright.codegen.llvm.math.block import Block, Value
from tilewright.codegen.llvm.math.exponential import round_to_integer
from tilewright.codegen.llvm.math.pairs import Pair, fast_two_sum, multiply, two_sum

_LIMIT = 1.0e6
_TWO_OVER_PI = 0.6366197723675814
_HALF_PI_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21)
_HALF_PI_REST = 8.4784276603689e-32
_HALF_PI, _HALF_PI_LOW = 1.5707963267948966, 6.123233995736766e-17
# The bits of 2/pi, 32 to a word, after two words of zeros.
_WORDS = (
    0, 0,
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561, 0xB7246E3A,
    0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41,
    0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF,
    0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08,
    0x56033046,
)  # fmt: skip
_PICKED = 7
"""The words of a window of 192 bits that need not start at a word."""
_LOW_WORD = 0xFFFFFFFF

_SIN = (
    -7.586636882825062e-13, 1.6058530596645953e-10, -2.50521062259944e-08, 2.755731921932058e-06,
    -0.0001984126984126504, 0.008333333333333331, -0.16666666666666666,
)  # fmt: skip
_COS = (
    -1.1382544645349108e-11, 2.087614504941318e-09, -2.755731726587808e-07, 2.48015872987544e-05,
    -0.0013888888888887389, 0.041666666666666664,
)  # fmt: skip


def _reduce(block: Block, x: Value) -> tuple[Value, Pair]:
    """``n`` (modulo four, as an integer) and ``r``."""
    quadrant, r = _reduce_moderate(block, x)
    large = (x.absolute() <= _LIMIT) ^ 1
    quadrant, high, low = block.unless_all_false(
        large, [quadrant, r.high, r.low], lambda: _merge(block, large, x, quadrant, r)
    )
    # Infinity minus itself is NaN, which infinities and NaN must give; zero leaves the others as they are.
    return quadrant, Pair(high + (x - x), low)


def _merge(block: Block, large: Value, x: Value, quadrant: Value, r: Pair) -> list[Value]:
    far_quadrant, far = _reduce_large(block, x)
    return [
        block.select(large, far_quadrant, quadrant),
        block.select(large, far.high, r.high),
        block.select(large, far.low, r.low),
    ]


def _reduce_moderate(block: Block, x: Value) -> tuple[Value, Pair]:
    first, second, third = _HALF_PI_PARTS
    quadrant, whole = round_to_integer(block, x, _TWO_OVER_PI)
    rest = two_sum(x - whole * first, -(whole * second))
    last = two_sum(rest.high, -(whole * third))
    return quadrant, fast_two_sum(last.high, last.low + (rest.low - whole * _HALF_PI_REST))


def _reduce_large(block: Block, x: Value) -> tuple[Value, Pair]:
    """The product of the mantissa with 192 bits of 2/pi, of which the upper 128 count, in units of 2**-126."""
    bits = x.bits()
    # The bits of 2/pi before the window make multiples of four.
    position = (bits.shift_right(52) & 0x7FF) - 1075 + 62
    upper, lower = _product(block, (bits & (2**52 - 1)) | 2**52, _window(block, position))
    quadrant = (upper + (1 << 61)).shift_right(62)
    fraction = upper - quadrant.shift_left(62)
    # Each part is a number of 32 bits, of which the first has the sign: exact as floats.
    parts = [fraction.shift_right_signed(32), fraction & _LOW_WORD, lower.shift_right(32), lower & _LOW_WORD]
    first, second, third, fourth = (
        part.to_float("double") * 2.0**unit for part, unit in zip(parts, (-30, -62, -94, -126), strict=True)
    )
    turns = two_sum(first, second)
    turns = two_sum(turns.high, turns.low + (third + fourth))
    r = multiply(block, turns, _HALF_PI, _HALF_PI_LOW)
    negative = x < 0.0
    return block.select(negative, -quadrant, quadrant), Pair(
        block.select(negative, -r.high, r.high), block.select(negative, -r.low, r.low)
    )


def _window(block: Block, position: Value) -> list[Value]:
    """The 192 bits of 2/pi from a bit on, 32 to a word."""
    word, shift = position.shift_right_signed(5), (position & 31).to_integer("i32")
    picked = [block.constant("i32", _signed(_WORDS[offset])) for offset in range(_PICKED)]
    for index in range(1, len(_WORDS) - _PICKED + 1):
        here = word.equals(index)
        picked = [
            block.select(here, _signed(_WORDS[index + offset]), chosen)
            for offset, chosen in enumerate(picked)
        ]
    return [block.intrinsic("fshl", high, low, shift).zero_extend("i64") for high, low in pairwise(picked)]


def _signed(word: int) -> int:
    """A 32-bit word as LLVM prints it."""
    return word - (1 << 32) if word >> 31 else word


def _product(block: Block, mantissa: Value, window: Sequence[Value]) -> tuple[Value, Value]:
    """The upper 128 of the low 192 bits of a product, as two integers."""
    low, high = mantissa & _LOW_WORD, mantissa.shift_right(32)
    # The columns of 32 bits that each product of words adds to; what is carried from the last two is left out.
    columns = [block.constant("i64", 0) for _ in range(len(window))]
    for place, word in enumerate(window):
        for factor, column in ((low, place), (high, place - 1)):
            product = factor * word
            if column >= 0:
                columns[column] = columns[column] + (product & _LOW_WORD)
            if column >= 1:
                columns[column - 1] = columns[column - 1] + product.shift_right(32)
    for column in range(len(window) - 1, 0, -1):
        columns[column - 1] = columns[column - 1] + columns[column].shift_right(32)
    first, second, third, fourth = (column & _LOW_WORD for column in columns[:4])
    return first.shift_left(32) | second, third.shift_left(32) | fourth


def _sine(block: Block, r: Pair) -> Value:
    square = r.high * r.high
    cubic = block.polynomial(square, _SIN) * (square * r.high)
    # sin(h + l) = sin(h) + l cos(h).
    return r.high + block.multiply_add(r.low, block.multiply_add(square, -0.5, 1.0), cubic)


def _cosine(block: Block, r: Pair) -> Value:
    square = r.high * r.high
    half = square * 0.5
    near = 1.0 - half
    lost = (1.0 - near) - half
    quartic = block.polynomial(square, _COS) * (square * square)
    return near + (lost + (quartic - r.high * r.low))


def _choose(block: Block, quadrant: Value, r: Pair) -> Value:
    """sin(n * pi/2 + r)."""
    odd = (quadrant & 1).differs(0)
    value = block.select(odd, _cosine(block, r), _sine(block, r))
    sign = (quadrant & 2).shift_left(62)
    return (value.bits() ^ sign).bitcast("double")


def sin(block: Block, x: Value) -> Value:
    """The sine."""
    quadrant, r = _reduce(block, x)
    return block.select(x.equals(0.0), x, _choose(block, quadrant, r))


def cos(block: Block, x: Value) -> Value:
    """The cosine."""
    quadrant, r = _reduce(block, x)
    return _choose(block, quadrant + 1, r)


def tan(block: Block, x: Value) -> Value:
    """The tangent: sine over cosine, or, an odd number of quarter turns further, its negative inverse."""
    quadrant, r = _reduce(block, x)
    odd = (quadrant & 1).differs(0)
    sine, cosine = _sine(block, r), _cosine(block, r)
    result = block.select(odd, -cosine, sine) / block.select(odd, sine, cosine)
    return block.select(x.equals(0.0), x, result)
