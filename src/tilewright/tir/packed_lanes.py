"""Packed int8, int16 and bfloat16 lanes: several numbers in a 32-bit word, as dot-product instructions take them.

A word holds four 8-bit integers, or two int16 or bfloat16 numbers, the first in the lowest bits. ``dot_word``
multiplies the numbers of two words and adds the products: integers wrap like int32; for bfloat16 every product and sum
is at least as exact as float32, and subnormal numbers may count as zero.
"""

from __future__ import annotations

from typing import Final

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError

WORD_BITS: Final = 32

_DOT_NAMES: Final = {
    ("uint8", "int8"): "dot_uint8_int8",
    ("int8", "int8"): "dot_int8_int8",
    ("int16", "int16"): "dot_int16",
    ("bfloat16", "bfloat16"): "dot_bfloat16",
}


def numbers_per_lane(dtype: DataType | str) -> int:
    """How many numbers of a type a word holds."""
    return WORD_BITS // DataType(dtype).bits


def sum_type(dtype: DataType | str) -> str:
    """The type in which products of numbers of a type are added."""
    return "float32" if DataType(dtype).is_float else "int32"


def can_multiply(first: DataType | str, second: DataType | str) -> bool:
    """True if there is a product of words of these types."""
    return (str(first), str(second)) in _DOT_NAMES


def pack_word(*numbers: PrimExpr) -> PrimExpr:
    """The bits of two or four numbers as one int32."""
    kind = numbers[0].dtype
    if len(numbers) != numbers_per_lane(kind) or any(one.dtype != kind for one in numbers):
        kinds = ", ".join(str(one.dtype) for one in numbers)
        raise ExpressionError(
            f"a word holds four numbers of 8 bits or two of 16, all of one type, not {kinds}"
        )
    return operators.call("pack_word", str(DataType("int32").with_lanes(kind.lanes)), list(numbers))


def dot_word(first: PrimExpr, second: PrimExpr, first_type: str, second_type: str) -> PrimExpr:
    """The sum of the products of the numbers in two words, which are of the given types."""
    if not can_multiply(first_type, second_type):
        raise ExpressionError(f"there is no dot product of {first_type} and {second_type}")
    kind = DataType(sum_type(first_type)).with_lanes(first.dtype.lanes)
    return operators.call(_DOT_NAMES[first_type, second_type], str(kind), [first, second])
