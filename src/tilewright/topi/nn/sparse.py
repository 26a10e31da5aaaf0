"""Products with sparse matrices.

A matrix in CSR form is (values, columns, row starts); in BSR form its values are blocks (count, rows, columns) and the
others number blocks. Kernels loop only over the stored elements of a row.
"""

from __future__ import annotations

from typing import Any

from tilewright import te, tir
from tilewright.support.errors import OpAttributeInvalid
from tilewright.target import generic_func
from tilewright.te import Tensor
from tilewright.topi import tag
from tilewright.topi.kernel import loop_kernel
from tilewright.topi.nn.pad import pad_spatial
from tilewright.topi.nn.utils import sum_types
from tilewright.topi.utils import InvalidShapeError, get_const_int, simplify


def _times_dense(
    dense: Tensor,
    element: Any,
    count: Any,
    data: Tensor,
    indices: Tensor,
    indptr: Tensor,
    result: str,
    tag_name: str,
) -> Tensor:
    """``out[m, row] = sum(element(dense, m, column) * sparse[row, column])``, added as ``sum_types`` says."""
    rows = simplify(indptr.shape[0] - 1)
    # A block is unrolled in the code, so its size is part of it.
    block_rows, block_columns = _block_shape(data)
    inner, _ = sum_types(result, None)

    def body(builder: Any, ins: Any, outs: Any) -> None:
        given, values, columns, starts = ins
        with (
            builder.for_range(0, count, name="m", kind="parallel") as m,
            builder.for_range(0, rows, name="row") as row,
        ):
            total = builder.allocate(inner, block_rows, name="total", scope="local")
            with builder.for_range(0, block_rows, name="part") as part:
                total[part] = tir.const(0, inner)
            with builder.for_range(starts[row], starts[row + 1], name="at", dtype=starts.dtype) as at:
                for step in range(block_columns):
                    column = columns[at] * block_columns + step
                    value = builder.let("value", element(given, m, column).astype(inner))
                    with builder.for_range(0, block_rows, name="part") as part:
                        weight = values[(at * block_rows + part) * block_columns + step]
                        total[part] = total[part] + value * weight.astype(inner)
            with builder.for_range(0, block_rows, name="part") as part:
                outs[0][m, row * block_rows + part] = total[part].astype(result)

    form = "csrmm" if len(data.shape) == 1 else "bsrmm"
    shape = (count, simplify(rows * block_rows))
    return loop_kernel(
        tag_name, [dense, data, indices, indptr], [(shape, result)], body, tag=f"{tag_name}_{form}"
    )[0]


def _block_shape(data: Tensor) -> tuple[int, int]:
    """The rows and columns of a block of the values; an element of CSR form is a block of one."""
    if len(data.shape) not in (1, 2, 3):
        raise InvalidShapeError(
            "the values of a sparse matrix have 1 (CSR), 2 (BSR with blocks of one column) or 3 (BSR) dimensions, not "
            f"{len(data.shape)}"
        )
    rows, columns = [*[get_const_int(extent) for extent in data.shape[1:]], 1, 1][:2]
    return rows, columns


def sparse_dense_sp_rhs(
    data: Tensor, weight_data: Tensor, weight_indices: Tensor, weight_indptr: Tensor
) -> Tensor:
    """``data @ weight.T`` with sparse weights, as computations that a schedule or a tuner can change: the length of a
    reduction is what the row starts say. Graphs use ``sparse_dense_kernel``."""
    block_rows, block_columns = _block_shape(weight_data)
    rows, inner = simplify(weight_indptr.shape[0] - 1), sum_types(data.dtype, None)[0]

    def dot(m: Any, row: Any, part: Any) -> Any:
        start = weight_indptr[row]
        element = te.reduce_axis((0, weight_indptr[row + 1] - start), name="elem_idx")
        at = start + element
        if len(weight_data.shape) < 3:
            weight = weight_data(*[at, part][: len(weight_data.shape)])
            return te.sum(data[m, weight_indices[at]].astype(inner) * weight.astype(inner), axis=element)
        step = te.reduce_axis((0, block_columns), name="c")
        column = weight_indices[at] * block_columns + step
        weight = weight_data[at, part, step].astype(inner)
        return te.sum(data[m, column].astype(inner) * weight, axis=[element, step])

    count = data.shape[0]
    if len(weight_data.shape) == 1:
        product: Tensor = te.compute(
            (count, rows),
            lambda m, row: dot(m, row, 0),
            name="sparse_dense_sp_rhs",
            tag="sparse_dense_sp_rhs_csrmm",
        )
        if inner != data.dtype:
            product = te.compute(
                product.shape, lambda m, n: product(m, n).astype(data.dtype), tag=tag.INJECTIVE
            )
        return product
    blocks = te.compute(
        (count, rows, block_rows),
        dot,
        name="sparse_dense_sp_rhs_block",
        tag="sparse_dense_sp_rhs_bsrmm_block",
    )
    made: Tensor = te.compute(
        (count, simplify(rows * block_rows)),
        lambda m, n: blocks(m, n // block_rows, n % block_rows).astype(data.dtype),
        name="sparse_dense_sp_rhs",
        tag="sparse_dense_sp_rhs_bsrmm",
    )
    return made


def sparse_dense_kernel(
    dense_data: Tensor,
    sparse_data: Tensor,
    sparse_indices: Tensor,
    sparse_indptr: Tensor,
    sparse_lhs: bool = False,
) -> Tensor:
    """``sparse_dense`` as one kernel, parallel over the rows of the dense matrix, with sums in registers."""
    product = _times_dense(
        dense_data,
        lambda dense, m, column: dense[m, column],
        dense_data.shape[0],
        sparse_data,
        sparse_indices,
        sparse_indptr,
        dense_data.dtype,
        "sparse_dense_sp_rhs",
    )
    return _transposed(product) if sparse_lhs else product


def _transposed(product: Tensor) -> Tensor:
    made: Tensor = te.compute(
        (product.shape[1], product.shape[0]),
        lambda m, n: product(n, m),
        name="sparse_dense_sp_lhs",
        tag=tag.INJECTIVE,
    )
    return made


def sparse_dense_sp_lhs(
    data_data: Tensor, data_indices: Tensor, data_indptr: Tensor, weight: Tensor
) -> Tensor:
    """``data @ weight.T`` with sparse data."""
    return _transposed(sparse_dense_sp_rhs(weight, data_data, data_indices, data_indptr))


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
        raise OpAttributeInvalid(f"sparse_conv2d supports the layouts NHWC and NCHW, not {layout!r}")
    if kernel_size % 2 == 0:
        raise OpAttributeInvalid(f"sparse_conv2d needs an odd kernel size, not {kernel_size}")
    extent = dict(zip(layout, dense_data.shape, strict=True))
    around = [kernel_size // 2] * 2
    axes = [layout.index("H"), layout.index("W")]
    padded = pad_spatial(dense_data, axes, around, around)
    channels, width = extent["C"], extent["W"]
    area = simplify(extent["H"] * width)

    def pixel(image: Any, m: Any, column: Any) -> Any:
        """The element of the matrix (pixels, taps * channels) that the kernel multiplies."""
        n, h, w = m // area, (m % area) // width, m % width
        tap = column // channels
        at = {"N": n, "C": column % channels, "H": h + tap // kernel_size, "W": w + tap % kernel_size}
        return image[[at[letter] for letter in layout]]

    product = _times_dense(
        padded,
        pixel,
        simplify(extent["N"] * area),
        sparse_data,
        sparse_indices,
        sparse_indptr,
        dense_data.dtype,
        "sparse_conv2d_sp",
    )

    def element(*indices: Any) -> Any:
        at = dict(zip(layout, indices, strict=True))
        return product((at["N"] * extent["H"] + at["H"]) * width + at["W"], at["C"])

    shape = {**extent, "C": product.shape[1]}
    made: Tensor = te.compute(
        [shape[letter] for letter in layout], element, name="sparse_conv2d", tag=tag.INJECTIVE
    )
    return made


def sparse_transpose(sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor) -> list[Tensor]:
    """The transpose of a square matrix in CSR form: its values, columns (in order) and row starts."""
    if len(sparse_data.shape) != 1:
        raise InvalidShapeError("sparse_transpose takes a matrix in CSR form, its values in one dimension")
    count, ends = sparse_data.shape[0], sparse_indptr.shape[0]
    kind = sparse_indices.dtype
    one = tir.const(1, kind)

    def body(builder: Any, ins: Any, outs: Any) -> None:
        data, indices, indptr = ins
        out_data, out_indices, out_indptr = outs
        with builder.for_range(0, ends, name="i") as i:
            out_indptr[i] = tir.const(0, kind)
        # Row starts are first the counts of rows, one place ahead, then their running sum.
        with builder.for_range(0, count, name="i") as i:
            out_indptr[indices[i] + 1] = out_indptr[indices[i] + 1] + one
        with builder.for_range(0, ends - 1, name="i") as i:
            out_indptr[i + 1] = out_indptr[i + 1] + out_indptr[i]
        cursor = builder.allocate(kind, ends, name="cursor")
        with builder.for_range(0, ends, name="i") as i:
            cursor[i] = out_indptr[i]
        with (
            builder.for_range(0, ends - 1, name="row") as row,
            builder.for_range(indptr[row], indptr[row + 1], name="i", dtype=kind) as i,
        ):
            place = builder.let("place", cursor[indices[i]])
            out_data[place] = data[i]
            out_indices[place] = tir.Cast(kind, row)
            cursor[indices[i]] = place + one

    outputs = [(tensor.shape, str(tensor.dtype)) for tensor in (sparse_data, sparse_indices, sparse_indptr)]
    return loop_kernel(
        "sparse_transpose",
        [sparse_data, sparse_indices, sparse_indptr],
        outputs,
        body,
        tag="sparse_transpose_csr",
    )


def sparse_add(
    dense_data: Tensor, sparse_data: Tensor, sparse_indices: Tensor, sparse_indptr: Tensor
) -> Tensor:
    """A dense matrix plus one in CSR form."""
    rows, columns = dense_data.shape

    def body(builder: Any, ins: Any, outs: Any) -> None:
        dense, data, indices, indptr = ins
        with builder.for_range(0, rows, name="row", kind="parallel") as row:
            with builder.for_range(0, columns, name="column") as column:
                outs[0][row, column] = dense[row, column]
            with builder.for_range(indptr[row], indptr[row + 1], name="i", dtype=indptr.dtype) as i:
                outs[0][row, indices[i]] = outs[0][row, indices[i]] + data[i]

    return loop_kernel(
        "sparse_add",
        [dense_data, sparse_data, sparse_indices, sparse_indptr],
        [(dense_data.shape, dense_data.dtype)],
        body,
        tag="sparse_add_csr",
    )[0]


@generic_func
def sparse_dense_alter_layout(_attrs: Any, _inputs: Any, _tinfos: Any, _out_type: Any) -> Any:
    """The call with weights in a form that the target prefers, or None to keep it."""
    return None
