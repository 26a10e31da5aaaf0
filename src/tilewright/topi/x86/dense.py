"""Products of matrices for x86: in dot products for few rows, with packed weights for many."""

from __future__ import annotations

from typing import Any, Final

from tilewright import te
from tilewright.schedule.cpu.layouts import dense_block
from tilewright.schedule.cpu.narrow import uses_words
from tilewright.te import Tensor
from tilewright.topi.nn.batch_matmul import batch_matmul as plain_batch_matmul
from tilewright.topi.nn.dense import add_bias
from tilewright.topi.nn.dense import dense as dense_nopack
from tilewright.topi.nn.dense import dense_pack as dense_with_packed_weights
from tilewright.topi.tag import INJECTIVE
from tilewright.topi.utils import get_const_tuple
from tilewright.topi.x86.narrow import batch_matmul_words, dense_words
from tilewright.topi.x86.packing import PACK, pack_weight

__all__ = ["batch_matmul", "dense", "dense_nopack", "dense_pack"]

ROWS_WORTH_PACKING: Final = 8
"""Rows from which a copy of the other matrix is repaid."""


def dense(data: Tensor, weight: Tensor, bias: Tensor | None = None, out_dtype: str | None = None) -> Tensor:
    """``data @ weight.T + bias``, the weights packed on the way where the rows are many enough to repay it."""
    if len(data.shape) == 2 and uses_words(data.dtype, weight.dtype, out_dtype):
        return _dense_in_words(data, weight, bias, out_dtype)
    rows = get_const_tuple(data.shape[:-1])
    many = all(isinstance(count, int) for count in rows) and _product(rows) >= ROWS_WORTH_PACKING
    known = all(isinstance(size, int) for size in get_const_tuple(weight.shape))
    if many and known and len(data.shape) == 2:
        return dense_pack(data, weight, bias, out_dtype)
    return dense_nopack(data, weight, bias, out_dtype)


def dense_pack(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    out_dtype: str | None = None,
    units: Any = None,
) -> Tensor:
    """``dense`` with weights in blocks of units. Weights of three or four dimensions are packed already; the last block
    may then hold fewer than a block's units."""
    if len(weight.shape) == 4 and uses_words(data.dtype, weight.dtype, out_dtype):
        return dense_words(data, weight, bias, out_dtype, units)
    if len(weight.shape) in (3, 4):
        return dense_with_packed_weights(data, weight, bias, out_dtype, units)
    columns, depth = get_const_tuple(weight.shape)
    rows = get_const_tuple(data.shape)[0]
    block = dense_block(columns, rows if isinstance(rows, int) else None, depth, str(data.dtype))
    # Weights that do not fall into whole blocks keep a narrower block rather than units that do not exist.
    while columns % block:
        block -= 1
    return dense_with_packed_weights(data, pack_weight(weight, block), bias, out_dtype)


def batch_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    oshape: Any = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> Tensor:
    """``A[b] @ B[b]`` for each ``b``, either transposed before. A transposed ``B`` is turned once if it is read by
    many rows."""
    if uses_words(tensor_a.dtype, tensor_b.dtype, out_dtype):
        plain = plain_batch_matmul(tensor_a, tensor_b, oshape, out_dtype, transpose_a, transpose_b)
        return batch_matmul_words(tensor_a, tensor_b, plain.shape, out_dtype, transpose_a, transpose_b)
    rows = get_const_tuple(tensor_a.shape)[2 if transpose_a else 1]
    if transpose_b and isinstance(rows, int) and rows >= ROWS_WORTH_PACKING:
        batch, columns, depth = tensor_b.shape
        turned: Tensor = te.compute(
            (batch, depth, columns), lambda b, k, j: tensor_b[b, j, k], name="turned", tag=PACK
        )
        return plain_batch_matmul(tensor_a, turned, oshape, out_dtype, transpose_a, False)
    return plain_batch_matmul(tensor_a, tensor_b, oshape, out_dtype, transpose_a, transpose_b)


def _dense_in_words(data: Tensor, weight: Tensor, bias: Tensor | None, out_dtype: str | None) -> Tensor:
    """``dense`` as a product of one batch, whose words are packed on the way."""
    rows, units = data.shape[0], weight.shape[0]
    first, second = (
        te.compute((1, *each.shape), lambda b, i, j, each=each: each[i, j], name="batch", tag=INJECTIVE)
        for each in (data, weight)
    )
    product = batch_matmul_words(first, second, (1, rows, units), out_dtype)
    made = te.compute((rows, units), lambda i, j: product[0, i, j], name="T_dense", tag=INJECTIVE)
    return add_bias(made, bias)


def _product(counts: tuple[Any, ...]) -> int:
    result = 1
    for count in counts:
        result *= int(count)
    return result
