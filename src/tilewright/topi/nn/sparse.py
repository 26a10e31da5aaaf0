"""Products with sparse matrices.

A matrix in CSR form is (values, columns, row starts); in BSR form its values are blocks (count, rows, columns) and the
others number blocks. Sums run over the stored elements of a row alone: the extent of the loop is read while it runs.
"""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.support.errors import OpAttributeInvalid
from tilewright.target import generic_func
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.nn.pad import pad_spatial
from tilewright.topi.nn.utils import as_type, sum_types
from tilewright.topi.utils import InvalidShapeError, get_const_tuple, simplify


def _row_axis(indptr: Tensor, row: Any, name: str) -> tuple[Any, Any]:
    """Where a row starts, and an axis over its stored elements."""
    start = indptr(row)
    return start, te.reduce_axis((0, indptr(row + 1) - start), name=name)


def _times_dense(
    dense_at: Any, count: Any, data: Tensor, indices: Tensor, indptr: Tensor, inner: Any, tag_name: str
) -> tuple[Tensor, int]:
    """``out[m, row] = sum(dense_at(m, column) * sparse[row, column])``; blocks of rows are an axis of their own.

    Gives the tensor, and how many rows a block has (none in CSR form).
    """
    rows = simplify(indptr.shape[0] - 1)
    if len(data.shape) == 1:

        def csr(m: Any, row: Any) -> Any:
            start, step = _row_axis(indptr, row, "elem_idx")
            at = start + step.var
            return te.sum(data(at).astype(inner) * dense_at(m, indices(at)).astype(inner), axis=step)

        return te.compute((count, rows), csr, name=tag_name, tag=f"{tag_name}_csrmm"), 0
    if len(data.shape) != 3:
        raise InvalidShapeError(
            f"the values of a sparse matrix have 1 (CSR) or 3 (BSR) dimensions, not {len(data.shape)}"
        )
    _, block_rows, block_columns = get_const_tuple(data.shape)

    def bsr(m: Any, row: Any, part: Any) -> Any:
        start, step = _row_axis(indptr, row, "elem_idx")
        column = te.reduce_axis((0, block_columns), name="c_idx")
        at = start + step.var
        value = dense_at(m, indices(at) * block_columns + column.var)
        return te.sum(data(at, part, column).astype(inner) * value.astype(inner), axis=[step, column])

    made = te.compute((count, rows, block_rows), bsr, name=tag_name, tag=f"{tag_name}_bsrmm_block")
    return made, block_rows


def sparse_dense_sp_rhs(
    data: Tensor, weight_data: Tensor, weight_indices: Tensor, weight_indptr: Tensor
) -> Tensor:
    """``data @ weight.T`` with sparse weights."""
    inner, result = sum_types(data.dtype, None)
    product, block = _times_dense(
        data,
        data.shape[0],
        weight_data,
        weight_indices,
        weight_indptr,
        inner,
        "sparse_dense_sp_rhs",
    )
    if block:
        blocked = product
        product = te.compute(
            (data.shape[0], simplify(blocked.shape[1] * block)),
            lambda m, n: blocked(m, n // block, n % block),
            name="sparse_dense_sp_rhs_rows",
            tag="sparse_dense_sp_rhs_bsrmm",
        )
    return as_type(product, result)


def sparse_dense_sp_lhs(
    data_data: Tensor, data_indices: Tensor, data_indptr: Tensor, weight: Tensor
) -> Tensor:
    """``data @ weight.T`` with sparse data."""
    inner, result = sum_types(weight.dtype, None)
    product, block = _times_dense(
        weight, weight.shape[0], data_data, data_indices, data_indptr, inner, "sparse_dense_sp_lhs"
    )

    def element(m: Any, n: Any) -> Any:
        return product(n, m // block, m % block) if block else product(n, m)

    rows = simplify(product.shape[1] * block) if block else product.shape[1]
    made: Tensor = te.compute(
        (rows, weight.shape[0]),
        element,
        name="sparse_dense_sp_lhs_rows",
        tag="sparse_dense_sp_lhs_bsrmm" if block else tag.INJECTIVE,
    )
    return as_type(made, result)


def sparse_dense(
    dense_data: Tensor,
    sparse_data: Tensor,
    sparse_indices: Tensor,
    sparse_indptr: Tensor,
    sparse_lhs: bool = False,
) -> Tensor:
    """``dense @ sparse.T``, or ``sparse @ dense.T`` with ``sparse_lhs``."""
    if sparse_lhs:
        return sparse_dense_sp_lhs(sparse_data, sparse_indices, sparse_indptr, dense_data)
    return sparse_dense_sp_rhs(dense_data, sparse_data, sparse_indices, sparse_indptr)


def sparse_conv2d(
    dense_data: Tensor,
    sparse_data: Tensor,
    sparse_indices: Tensor,
    sparse_indptr: Tensor,
    layout: str = "NHWC",
    kernel_size: int = 1,
) -> Tensor:
    """The convolution of stride one, padded to keep its size, with a sparse kernel.

    The kernel is the matrix (output, kernel height * kernel width * input).
    """
    if layout not in ("NHWC", "NCHW"):
        raise OpAttributeInvalid(f"sparse_conv2d knows the layouts NHWC and NCHW, not {layout!r}")
    if kernel_size % 2 == 0:
        raise OpAttributeInvalid(f"sparse_conv2d needs an odd kernel size, not {kernel_size}")
    extent = dict(zip(layout, dense_data.shape, strict=True))
    around = [kernel_size // 2] * 2
    axes = [layout.index("H"), layout.index("W")]
    padded = pad_spatial(dense_data, axes, around, around)
    channels, width = extent["C"], extent["W"]
    inner, result = sum_types(dense_data.dtype, None)
    area = simplify(extent["H"] * width)

    def pixel(m: Any, column: Any) -> Any:
        """The element of the matrix (pixels, taps * channels) that the kernel multiplies."""
        n, h, w = m // area, (m % area) // width, m % width
        tap = column // channels
        at = {"N": n, "C": column % channels, "H": h + tap // kernel_size, "W": w + tap % kernel_size}
        return padded(*[at[letter] for letter in layout])

    product, block = _times_dense(
        pixel,
        simplify(extent["N"] * area),
        sparse_data,
        sparse_indices,
        sparse_indptr,
        inner,
        "sparse_conv2d_sp",
    )

    def element(*indices: Any) -> Any:
        at = dict(zip(layout, indices, strict=True))
        m = (at["N"] * extent["H"] + at["H"]) * width + at["W"]
        c = at["C"]
        return product(m, c // block, c % block) if block else product(m, c)

    outputs = simplify(product.shape[1] * block) if block else product.shape[1]
    shape = {**extent, "C": outputs}
    made: Tensor = te.compute(
        [shape[letter] for letter in layout],
        element,
        name="sparse_conv2d",
        tag=f"conv2d_sparse_{layout.lower()}",
    )
    return as_type(made, result)


def sparse_transpose(sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor) -> Any:
    """The transpose of a square matrix in CSR form, in CSR form with columns in order: (values, columns, row starts)."""
    if len(sparse_data.shape) != 1:
        raise InvalidShapeError("sparse_transpose takes a matrix in CSR form, its values in one dimension")
    count, ends = sparse_data.shape[0], sparse_indptr.shape[0]
    index_type = sparse_indices.dtype

    def body(inputs: Any, outputs: Any) -> Any:
        builder = tir.ir_builder.create()
        data, indices, indptr = (builder.buffer_ptr(buffer) for buffer in inputs)
        out_data, out_indices, out_indptr = (builder.buffer_ptr(buffer) for buffer in outputs)
        with builder.for_range(0, ends, name="i") as i:
            out_indptr[i] = tir.const(0, index_type)
        # Row starts are first the counts of rows, one place ahead, then their running sum.
        with builder.for_range(0, count, name="i") as i:
            out_indptr[indices[i] + 1] = out_indptr[indices[i] + 1] + tir.const(1, index_type)
        with builder.for_range(0, ends - 1, name="i") as i:
            out_indptr[i + 1] = out_indptr[i + 1] + out_indptr[i]
        cursor = builder.allocate(index_type, ends, name="cursor")
        with builder.for_range(0, ends, name="i") as i:
            cursor[i] = out_indptr[i]
        with builder.for_range(0, ends - 1, name="row") as row:
            with builder.for_range(indptr[row], indptr[row + 1], name="i", dtype=index_type) as i:
                place = builder.let("place", cursor[indices[i]])
                out_data[place] = data[i]
                out_indices[place] = tir.Cast(index_type, row)
                cursor[indices[i]] = place + tir.const(1, index_type)
        return builder.get()

    return te.extern(
        [sparse_data.shape, sparse_indices.shape, sparse_indptr.shape],
        [sparse_data, sparse_indices, sparse_indptr],
        body,
        dtype=[sparse_data.dtype, index_type, index_type],
        name="sparse_transpose",
        tag="sparse_transpose_csr",
    )


def sparse_add(
    dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor
) -> Tensor:
    """A dense matrix plus one in CSR form."""
    rows, columns = dense_data.shape

    def body(inputs: Any, outputs: Any) -> Any:
        builder = tir.ir_builder.create()
        dense, data, indices, indptr = (builder.buffer_ptr(buffer) for buffer in inputs)
        out = builder.buffer_ptr(outputs[0])
        with builder.for_range(0, rows, name="row", kind="parallel") as row:
            with builder.for_range(0, columns, name="column") as column:
                out[row, column] = dense[row, column]
            with builder.for_range(indptr[row], indptr[row + 1], name="i", dtype=indptr.dtype) as i:
                out[row, indices[i]] = out[row, indices[i]] + data[i]
        return builder.get()

    made: Tensor = te.extern(
        dense_data.shape,
        [dense_data, sparse_data, sparse_indices, sparse_indptr],
        body,
        dtype=dense_data.dtype,
        name="sparse_add",
        tag="sparse_add_csr",
    )
    return made


@generic_func
def sparse_dense_alter_layout(_attrs: Any, _inputs: Any, _tinfos: Any, _out_type: Any) -> Any:
    """A call with weights in another form that the target prefers, or None to leave the call as it is."""
    return None
