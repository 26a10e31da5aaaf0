"""Networks of signs: numbers as one bit, products as XOR and popcount."""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.convolution import require_equal
from tilewright.topi.utils import InvalidShapeError, get_const_tuple, simplify


def binarize_pack(data: Tensor, axis: int | None = None, name: str = "PackedInput") -> Tensor:
    """The signs along an axis (the last by default) as words of 32 bits: a bit is set where the number is not negative.

    The first number of a word has its highest bit.
    """
    along = (len(data.shape) - 1 if axis is None else axis) % len(data.shape)
    (extent,) = get_const_tuple([data.shape[along]])
    if isinstance(extent, int) and extent % 32:
        raise InvalidShapeError(f"binarize_pack: {extent} numbers do not fill whole words of 32 bits")
    shape = list(data.shape)
    shape[along] = simplify(shape[along] // 32)
    lane = te.reduce_axis((0, 32), name="lane")

    def element(*indices: Any) -> Any:
        at = list(indices)
        at[along] = at[along] * 32 + lane.var
        bit = (data(*at) >= 0).astype("uint32")
        return te.sum(bit << (31 - lane.var).astype("uint32"), axis=lane)

    made: Tensor = te.compute(shape, element, name=name, tag="binarize_pack")
    return made


def binary_dense(data: Tensor, weight: Tensor) -> Tensor:
    """``data @ weight.T`` of packed signs, in float32: +1 for each pair that agrees, -1 for each that does not."""
    require_equal(data.shape[1], weight.shape[1], "packed features of binary_dense")
    k = te.reduce_axis((0, data.shape[1]), name="k")
    differing = te.compute(
        (data.shape[0], weight.shape[0]),
        lambda i, j: te.sum(tir.popcount(data(i, k) ^ weight(j, k)), axis=k),
        tag="binary_dense",
        name="binary_dense",
    )
    total = simplify(data.shape[1] * 32)
    made: Tensor = te.compute(
        differing.shape,
        lambda i, j: tir.Cast("float32", total) - tir.const(2, "float32") * differing(i, j).astype("float32"),
        name="binary_dense_sign",
        tag=tag.ELEMWISE,
    )
    return made
