"""Numbers of a few bits, bit by bit in words: what products of such numbers by AND and popcount work on."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.support.dtype import DataType
from tilewright.te import Tensor
from tilewright.topi.utils import InvalidShapeError, get_const_int, get_const_tuple, simplify


def binary_op_multiplier(pack_dtype: str) -> int:
    """How many numbers a word holds one bit of."""
    return DataType(pack_dtype).bits


def bitpack(
    data: Tensor, bits: int, pack_axis: int, bit_axis: int, pack_type: str, name: str = "QuantizeInput"
) -> Tensor:
    """The lowest ``bits`` bits of integers, each bit's plane packed into words along ``pack_axis``.

    The planes are along a new axis at ``bit_axis``. The first number of a word has its highest bit.
    """
    width = binary_op_multiplier(pack_type)
    shape = list(data.shape)
    (extent,) = get_const_tuple([shape[pack_axis]])
    if isinstance(extent, int) and extent % width:
        raise InvalidShapeError(f"bitpack: {extent} numbers do not fill whole words of {pack_type}")
    shape[pack_axis] = simplify(shape[pack_axis] // width)
    shape.insert(bit_axis, tir.const(bits, "int32"))
    lane = te.reduce_axis((0, width), name="lane")

    def element(*indices: Any) -> Any:
        plane = indices[bit_axis]
        at = [index for position, index in enumerate(indices) if position != bit_axis]
        at[pack_axis] = at[pack_axis] * width + lane.var
        number = data(*at)
        bit = (number >> plane.astype(number.dtype)) & tir.const(1, number.dtype)
        # Each word's bits are disjoint, so that their sum is their union.
        return te.sum(bit.astype(pack_type) << (width - 1 - lane.var).astype(pack_type), axis=lane)

    made: Tensor = te.compute(shape, element, name=name, tag="bitpack")
    return made


def packed_or_pack(
    tensor: Tensor, rank: int, bits: int, pack_axis: int, bit_axis: int, pack_type: str
) -> Tensor:
    """A tensor of ``rank`` dimensions packed; one with the bit axis already there as it is."""
    if len(tensor.shape) == rank:
        return bitpack(tensor, bits, pack_axis, bit_axis, pack_type)
    if len(tensor.shape) != rank + 1 or get_const_int(tensor.shape[bit_axis]) != bits:
        raise InvalidShapeError(
            f"a packed tensor has {rank + 1} dimensions, of which number {bit_axis} has the {bits} bits"
        )
    return tensor


def bit_product(activation: Any, weight: Any, shift: Any, unipolar: bool, out_dtype: str) -> Any:
    """The sum of products of one plane of activations and one of weights, as word-wide counts.

    Bits of weights stand for 0 and 1, or for -1 and 1 where they are ``unipolar``.
    """
    count = tir.popcount(activation & weight).astype(out_dtype)
    if unipolar:
        count = count - tir.popcount(activation & ~weight).astype(out_dtype)
    return count << shift.astype(out_dtype)
