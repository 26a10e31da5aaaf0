"""Products of a matrix in compressed rows with a vector or a matrix.

A sparse matrix has ``data`` (the elements), ``indices`` (the column of each), ``indptr`` (where each row begins, and
the end) and ``shape``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import shape_text
from tilewright.te.operation import compute
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.kernel import loop_kernel


def _is_sparse(given: Any) -> bool:
    return all(hasattr(given, part) for part in ("data", "indices", "indptr", "shape"))


def _product(
    name: str,
    matrix: Any,
    other: Tensor,
    bias: Tensor | None,
    columns: Any,
    element: Any,
    transposed: bool = False,
) -> Tensor:
    """Rows of the sparse matrix times ``columns`` vectors: ``element(other, column, k)`` reads their elements.

    The bias has an element for each row of the sparse matrix. The result is transposed where the caller says so.
    """
    rows, dtype = matrix.shape[0], other.dtype
    if matrix.data.dtype != dtype:
        raise ExpressionError(f"{name}: the matrices have the types {matrix.data.dtype} and {dtype}")
    inputs = [matrix.data, matrix.indices, matrix.indptr, other]

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        data, indices, indptr, dense_values = ins[:4]
        with (
            builder.for_range(0, rows, name="row", kind="parallel") as row,
            builder.for_range(0, columns, name="column") as column,
        ):
            total = builder.allocate(dtype, 1, name="total", scope="local")
            total[0] = operators.const(0, dtype)
            with builder.for_range(0, indptr[row + 1] - indptr[row], name="k") as k:
                place = builder.let("place", indptr[row] + k)
                total[0] = total[0] + data[place] * element(dense_values, column, indices[place])
            target = column * rows + row if transposed else row * columns + column
            outs[0][target] = total[0] + ins[4][row] if bias is not None else total[0]

    shape = (columns, rows) if transposed else (rows, columns)
    given = inputs if bias is None else [*inputs, bias]
    return loop_kernel(name, given, [(shape, dtype)], body)[0]


def _require_matrix(name: str, given: Any) -> None:
    if len(given.shape) != 2:
        raise ExpressionError(f"{name} takes matrices, not {shape_text(given.shape)}")


def csrmv(a: Any, x: Tensor, y: Tensor | None = None) -> Tensor:
    """``a x + y``: a sparse matrix times a column, a matrix of one column."""
    _require_matrix("csrmv", a)
    if len(x.shape) not in (1, 2):
        raise ExpressionError(f"csrmv takes a column, not {shape_text(x.shape)}")
    return _product("csrmv", a, x, y, 1, lambda values, column, k: values[k])


def csrmm(a: Any, b: Tensor, c: Tensor | None = None) -> Tensor:
    """``a b + c``: a sparse matrix times a matrix; ``c`` has an element for each row."""
    _require_matrix("csrmm", a)
    _require_matrix("csrmm", b)
    width = b.shape[1]
    return _product("csrmm", a, b, c, width, lambda values, column, k: values[k * width + column])


def dense(data: Any, weight: Any, bias: Tensor | None = None) -> Tensor:
    """``data weight^T + bias``, where either the data or the weights are sparse."""
    _require_matrix("dense", data)
    _require_matrix("dense", weight)
    if _is_sparse(weight) and not _is_sparse(data):
        depth = data.shape[1]
        return _product(
            "dense",
            weight,
            data,
            bias,
            data.shape[0],
            lambda values, column, k: values[column * depth + k],
            transposed=True,
        )
    if not _is_sparse(data) or _is_sparse(weight):
        raise ExpressionError("dense takes one sparse matrix and one dense one")
    return _with_bias(_dense_data(data, weight), bias)


def _dense_data(data: Any, weight: Tensor) -> Tensor:
    depth = weight.shape[1]
    return _product(
        "dense", data, weight, None, weight.shape[0], lambda values, column, k: values[column * depth + k]
    )


def _with_bias(product: Tensor, bias: Tensor | None) -> Tensor:
    """The bias has an element for each column."""
    return (
        product
        if bias is None
        else compute(product.shape, lambda i, j: product[i, j] + bias[j], tag="broadcast")
    )
