"""Matrix products of numbers of a few bits, by AND and popcount."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.te import Tensor
from tilewright.topi.nn.bitserial_util import bit_product, bitpack, packed_or_pack
from tilewright.topi.nn.convolution import require_equal


def bitserial_dense(
    data: Tensor,
    weight: Tensor,
    data_bits: int,
    weight_bits: int,
    pack_dtype: str = "uint32",
    out_dtype: str = "int16",
    unipolar: bool = True,
) -> Tensor:
    """``data @ weight.T`` of a few bits each; the weights may be packed, (units, bits, words)."""
    activations = bitpack(data, data_bits, 1, 1, pack_dtype)
    weights = packed_or_pack(weight, 2, weight_bits, 1, 1, pack_dtype)
    require_equal(activations.shape[2], weights.shape[2], "packed features of bitserial_dense")
    k = te.reduce_axis((0, activations.shape[2]), name="k")
    b1 = te.reduce_axis((0, data_bits), name="db")
    b2 = te.reduce_axis((0, weight_bits), name="wb")

    def element(i: Any, j: Any) -> Any:
        product = bit_product(activations(i, b1, k), weights(j, b2, k), b1.var + b2.var, unipolar, out_dtype)
        return te.sum(product, axis=[b2, b1, k])

    made: Tensor = te.compute(
        (data.shape[0], weight.shape[0]),
        element,
        name="bitserial_dense",
        tag="bitserial_dense_unipolar" if unipolar else "bitserial_dense",
    )
    return made
