"""Dense layers whose weight is quantised and whose data are not: integers of 2, 4 or 8 bits in groups along the
features, each group of a unit with a scale and a zero point.

Weights are packed for vectors that run along units: (blocks of units, words, units of a block), with 32-bit words of
adjacent features of one unit. The fields of a word are ordered so that one mask gives four features, a byte each: the
lowest bits of the four bytes are the first four features, the next bits the next four, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tilewright import te
from tilewright.te.tensor import Tensor
from tilewright.topi.arguments import check_tensor
from tilewright.topi.utils import get_const_tuple

WORD_BITS: Final = 32
BYTES: Final = 4
"""The bytes of a word."""


@dataclass(frozen=True)
class WeightOnly:
    """The extents of such a layer. ``words`` and ``groups`` are those of one unit; ``zero`` is the zero point where
    all groups have the same one."""

    units: int
    depth: int
    bits: int
    words: int
    groups: int
    block: int
    zero: int = 0

    @property
    def fields(self) -> int:
        """How many features a word holds."""
        return WORD_BITS // self.bits

    @property
    def group(self) -> int:
        """How many features a group has; the last one may be padded."""
        return self.words // self.groups * self.fields

    @property
    def blocks(self) -> int:
        """How many blocks hold the units; the last one may be padded."""
        return -(-self.units // self.block)

    def shift(self, place: Any) -> Any:
        """The lowest bit of a feature, by its place in the word."""
        return place % BYTES * 8 + place // BYTES * self.bits

    @staticmethod
    def of(weight: Sequence[int], groups: int, units: int, depth: int, bits: int, zero: int) -> WeightOnly:
        """The extents of a packed weight of this shape."""
        return WeightOnly(units, depth, bits, weight[1], groups, weight[2], zero)


def pack_weight(integers: np.ndarray[Any, Any], extents: WeightOnly) -> np.ndarray[Any, Any]:
    """Integers (units, features) as words; padding is the zero point."""
    padded = np.full(
        (extents.blocks * extents.block, extents.words * extents.fields), extents.zero, np.uint32
    )
    padded[: extents.units, : extents.depth] = integers
    fields = padded.reshape(extents.blocks, extents.block, extents.words, extents.fields)
    words = np.zeros(fields.shape[:3], np.uint32)
    for place in range(extents.fields):
        words |= fields[..., place] << np.uint32(extents.shift(place))
    return np.ascontiguousarray(words.transpose(0, 2, 1)).view(np.int32)


def unpack_weight(words: np.ndarray[Any, Any], extents: WeightOnly) -> np.ndarray[Any, Any]:
    """The integers (units, features) of packed words."""
    plain = words.view(np.uint32).transpose(0, 2, 1)
    mask = np.uint32((1 << extents.bits) - 1)
    fields = [plain >> np.uint32(extents.shift(place)) & mask for place in range(extents.fields)]
    whole = np.stack(fields, axis=-1).reshape(extents.blocks * extents.block, -1)
    return whole[: extents.units, : extents.depth].astype(np.int32)


def pack_groups(values: np.ndarray[Any, Any], extents: WeightOnly) -> np.ndarray[Any, Any]:
    """Scales or zero points (units, groups) as (blocks of units, groups, units of a block), padded with zeros."""
    padded = np.zeros((extents.blocks * extents.block, extents.groups), values.dtype)
    padded[: extents.units] = values
    blocks = padded.reshape(extents.blocks, extents.block, extents.groups)
    return np.ascontiguousarray(blocks.transpose(0, 2, 1))


def unpack_groups(packed: np.ndarray[Any, Any], extents: WeightOnly) -> np.ndarray[Any, Any]:
    """The scales or zero points (units, features) of packed ones."""
    plain = packed.transpose(0, 2, 1).reshape(extents.blocks * extents.block, extents.groups)
    return plain.repeat(extents.group, axis=1)[: extents.units, : extents.depth]


def dense_weight_only(
    data: Tensor, weight: Tensor, scales: Tensor, zeros: Tensor | None, extents: WeightOnly
) -> Tensor:
    """``data @ (scale * (weight - zero)).T`` in float32, of rows of features and packed integers."""
    for tensor in (data, weight, scales, *([] if zeros is None else [zeros])):
        check_tensor("dense_weight_only", tensor)
    feature = te.reduce_axis((0, extents.depth), name="feature")
    block, fields, group = extents.block, extents.fields, extents.group

    def element(row: Any, unit: Any) -> Any:
        k = feature.var
        word = weight(unit // block, k // fields, unit % block)
        integer = word >> extents.shift(k % fields) & ((1 << extents.bits) - 1)
        at = (unit // block, k // group, unit % block)
        zero = extents.zero if zeros is None else zeros(*at).astype("int32")
        number = (integer - zero).astype("float32") * scales(*at).astype("float32")
        return te.sum(data(row, k).astype("float32") * number, axis=feature)

    (rows,) = get_const_tuple([data.shape[0]])
    sums = te.compute((rows, extents.units), element, name="sums")
    made: Tensor = te.compute(
        (rows, extents.units),
        lambda row, unit: sums(row, unit).astype(str(data.dtype)),
        name="dense_weight_only",
        tag="dense_weight_only",
    )
    return made
