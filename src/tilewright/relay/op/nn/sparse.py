"""Sparse matrix products and sums.

A matrix in CSR form is (values, columns, row starts). In BSR form its values are blocks, (count, rows, columns), and
the other two count in blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, TupleWrapper, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import as_it_is
from tilewright.relay.op.nn.convolution_rules import convolve
from tilewright.relay.op.nn.layout_conversion import converted_array, laid_out, whole_extents
from tilewright.relay.op.shapes import Dimension, combine, dims, same, tensors
from tilewright.te.tensor import Tensor

_PARTS = ("the values", "the columns", "the row starts")


@attributes
class SparseDenseAttrs(OpAttrs):
    """sparse_dense: whether the sparse matrix is the first."""

    sparse_lhs: bool = False


@attributes
class SparseConv2DAttrs(OpAttrs):
    """sparse_conv2d: the data's layout, and the kernel's extent."""

    layout: str = "NHWC"
    kernel_size: int = 1


def _rows(values: TensorType, starts: TensorType) -> Dimension:
    """The rows of a sparse matrix."""
    if len(values.shape) not in (1, 3) or len(starts.shape) != 1:
        raise RelationError(
            f"values of a sparse matrix have 1 (CSR) or 3 (BSR) dimensions, not {len(values.shape)}; "
            "row starts have one"
        )
    if len(values.shape) == 1:
        return combine(lambda ends: ends - 1, dims(starts)[0])
    return combine(lambda ends, block: (ends - 1) * block, dims(starts)[0], dims(values)[1])


def _whole(values: Any, columns: Any, starts: Any, width: int) -> Any:
    """A sparse matrix as an array; what is stored twice is added."""
    block_rows, block_columns = values.shape[1:] if values.ndim == 3 else (1, 1)
    blocks = values.reshape(-1, block_rows, block_columns).astype(np.float64)
    made = np.zeros(((len(starts) - 1) * block_rows, width))
    for row in range(len(starts) - 1):
        for place in range(starts[row], starts[row + 1]):
            down, right = row * block_rows, int(columns[place]) * block_columns
            made[down : down + block_rows, right : right + block_columns] += blocks[place]
    return made


def sparse_dense_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """dense (m, k) with sparse (n, k): (m, n), or (n, m) where the sparse one is the first."""
    found = tensors(types, "the dense matrix", *_PARTS)
    if found is None:
        return None
    dense, values, _, starts = found
    if len(dense.shape) != 2:
        raise RelationError(f"the dense operand is a matrix, not a tensor of {len(dense.shape)} dimensions")
    rows, others = _rows(values, starts), dims(dense)[0]
    first = getattr(attrs, "sparse_lhs", False)
    return TensorType((rows, others) if first else (others, rows), dense.dtype)


def _sparse_dense_reference(attrs: Any, dense: Any, values: Any, columns: Any, starts: Any) -> Any:
    matrix = _whole(values, columns, starts, dense.shape[1])
    wide = dense.astype(np.float64)
    made = matrix @ wide.T if getattr(attrs, "sparse_lhs", False) else wide @ matrix.T
    return made.astype(dense.dtype)


def _sparse_dense_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    return [topi.nn.sparse_dense_kernel(inputs[0], inputs[1], inputs[2], inputs[3], attrs.sparse_lhs)]


SPARSE_DENSE = define(
    "nn.sparse_dense",
    arguments=("dense_data", "sparse_data", "sparse_indices", "sparse_indptr"),
    attrs=SparseDenseAttrs,
    relation=sparse_dense_relation,
    compute=_sparse_dense_compute,
    reference=_sparse_dense_reference,
    layout=as_it_is,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=1,
    description="The product of a dense and a transposed sparse matrix.",
)

SPARSE_DENSE_PADDED = define(
    "nn.internal.sparse_dense_padded",
    arguments=("dense_data", "sparse_data", "sparse_indices", "sparse_indptr"),
    attrs=SparseDenseAttrs,
    relation=sparse_dense_relation,
    compute=_sparse_dense_compute,
    reference=_sparse_dense_reference,
    layout=as_it_is,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=1,
    description="sparse_dense with rows padded by zeros to a multiple of a size.",
)


def _parts(matrix: Any) -> list[RelayExpr]:
    """The values, columns and row starts of a matrix: an object that has them, or a tuple of them."""
    found = (matrix.data, matrix.indices, matrix.indptr) if hasattr(matrix, "indptr") else tuple(matrix)
    return [part if isinstance(part, RelayExpr) else const(np.asarray(part)) for part in found]


def sparse_dense(dense_mat: Any, sparse_mat: Any, sparse_lhs: bool = False) -> Call:
    """``dense @ sparse.T``, or ``sparse @ dense.T`` where ``sparse_lhs``; the sparse matrix has ``data``, ``indices``
    and ``indptr``, or is a tuple of them."""
    dense = dense_mat if isinstance(dense_mat, RelayExpr) else const(np.asarray(dense_mat))
    return Call(SPARSE_DENSE, (dense, *_parts(sparse_mat)), SparseDenseAttrs(bool(sparse_lhs)))


# Transpose and sum


def sparse_transpose_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """A square matrix in CSR form again."""
    found = tensors(types, *_PARTS)
    if found is None:
        return None
    if any(len(part.shape) != 1 for part in found):
        raise RelationError("a matrix in CSR form is needed, its three parts vectors")
    return TupleType(tuple(found))


def _sparse_transpose_reference(attrs: Any, values: Any, columns: Any, starts: Any) -> Any:
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    order = np.argsort(columns, kind="stable")
    counts = np.bincount(columns, minlength=len(starts) - 1)
    ends = np.concatenate([[0], np.cumsum(counts)])
    return values[order], rows[order].astype(columns.dtype), ends.astype(starts.dtype)


SPARSE_TRANSPOSE = define(
    "nn.sparse_transpose",
    arguments=("sparse_data", "sparse_indices", "sparse_indptr"),
    relation=sparse_transpose_relation,
    compute=lambda attrs, inputs, out_type: list(topi.nn.sparse_transpose(inputs[0], inputs[1], inputs[2])),
    reference=_sparse_transpose_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=1,
    description="The transpose of a square sparse matrix.",
)


def sparse_transpose(x: Any) -> TupleWrapper:
    """The transpose of a square matrix in CSR form: values, columns, row starts."""
    return TupleWrapper(Call(SPARSE_TRANSPOSE, _parts(x)), 3)


def sparse_add_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The dense matrix's type."""
    found = tensors(types, "the dense matrix", *_PARTS)
    if found is None:
        return None
    dense, values, _, starts = found
    if len(dense.shape) != 2 or len(values.shape) != 1:
        raise RelationError("a matrix and a matrix in CSR form are needed")
    same(_rows(values, starts), dims(dense)[0], "the rows of both matrices")
    return dense


def _sparse_add_reference(attrs: Any, dense: Any, values: Any, columns: Any, starts: Any) -> Any:
    made = dense.copy()
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    np.add.at(made, (rows, columns), values)
    return made


SPARSE_ADD = define(
    "nn.sparse_add",
    arguments=("dense_data", "sparse_data", "sparse_indices", "sparse_indptr"),
    relation=sparse_add_relation,
    compute=lambda attrs, inputs, out_type: [topi.nn.sparse_add(inputs[0], inputs[1], inputs[2], inputs[3])],
    reference=_sparse_add_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=1,
    description="A dense and a sparse matrix added.",
)


def sparse_add(dense_mat: Any, sparse_mat: Any) -> Call:
    """A dense matrix plus one in CSR form."""
    dense = dense_mat if isinstance(dense_mat, RelayExpr) else const(np.asarray(dense_mat))
    return Call(SPARSE_ADD, (dense, *_parts(sparse_mat)))


# Convolution


def sparse_conv2d_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The data's shape, with as many channels as the kernel has rows."""
    found = tensors(types, "the data", *_PARTS)
    if found is None:
        return None
    data, values, _, starts = found
    if attrs.layout not in ("NHWC", "NCHW"):
        raise RelationError(f"the layout is NHWC or NCHW, not {attrs.layout}")
    n, _, h, w = whole_extents(dims(data), attrs.layout, "NCHW", "the data")
    shape = laid_out((n, _rows(values, starts), h, w), "NCHW", attrs.layout, "the result")
    return TensorType(shape, data.dtype)


def _sparse_conv2d_reference(attrs: Any, data: Any, values: Any, columns: Any, starts: Any) -> Any:
    plain = converted_array(data, attrs.layout, "NCHW").astype(np.float64)
    size = attrs.kernel_size
    matrix = _whole(values, columns, starts, size * size * plain.shape[1])
    kernel = matrix.reshape(len(matrix), size, size, -1).transpose(0, 3, 1, 2)
    made = convolve(plain, kernel, 1, size // 2, 1, 1, str(data.dtype))
    return converted_array(made, "NCHW", attrs.layout)


SPARSE_CONV2D = define(
    "nn.sparse_conv2d",
    arguments=("dense_data", "sparse_data", "sparse_indices", "sparse_indptr"),
    attrs=SparseConv2DAttrs,
    relation=sparse_conv2d_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.nn.sparse_conv2d(inputs[0], inputs[1], inputs[2], inputs[3], attrs.layout, attrs.kernel_size)
    ],
    reference=_sparse_conv2d_reference,
    layout=as_it_is,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=1,
    description="Convolution of stride one with a sparse kernel, padded to keep its size.",
)


def sparse_conv2d(dense_mat: RelayExpr, sparse_mat: Any, layout: str = "NHWC", kernel_size: int = 1) -> Call:
    """The convolution of stride one, padded to keep its size, with a sparse kernel (output, height * width * input)."""
    return Call(SPARSE_CONV2D, (dense_mat, *_parts(sparse_mat)), SparseConv2DAttrs(layout, kernel_size))
