"""Matrix products that pack or transpose the second matrix as part of the kernel."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.te import Tensor
from tilewright.topi.nn.batch_matmul import batch_matmul
from tilewright.topi.nn.dense import add_bias, dense_pack
from tilewright.topi.nn.packed_lane_products import batch_matmul_packed_lanes
from tilewright.topi.nn.packing import PACK, pack_weight
from tilewright.topi.tag import INJECTIVE


def dense_packed(
    data: Tensor, weight: Tensor, bias: Tensor | None, out_dtype: str | None, block: int
) -> Tensor:
    """``data @ weight.T + bias`` with the weight packed into blocks of this many units, a divisor of their number."""
    return dense_pack(data, pack_weight(weight, block), bias, out_dtype)


def dense_packed_lanes(data: Tensor, weight: Tensor, bias: Tensor | None, out_dtype: str | None) -> Tensor:
    """``data @ weight.T + bias`` as a batched product of one, packed into lanes by the kernel."""
    rows, units = data.shape[0], weight.shape[0]
    first, second = (
        te.compute((1, *each.shape), lambda b, i, j, each=each: each[i, j], name="batch", tag=INJECTIVE)
        for each in (data, weight)
    )
    product = batch_matmul_packed_lanes(first, second, (1, rows, units), out_dtype)
    made = te.compute((rows, units), lambda i, j: product[0, i, j], name="T_dense", tag=INJECTIVE)
    return add_bias(made, bias)


def batch_matmul_transposed(
    tensor_a: Tensor, tensor_b: Tensor, oshape: Any, out_dtype: str | None, transpose_a: bool
) -> Tensor:
    """``A[b] @ B[b].T`` for each ``b``, with ``B`` transposed in memory first."""
    batch, columns, depth = tensor_b.shape
    transposed: Tensor = te.compute(
        (batch, depth, columns), lambda b, k, j: tensor_b[b, j, k], name="transposed", tag=PACK
    )
    return batch_matmul(tensor_a, transposed, oshape, out_dtype, transpose_a, False)
