"""Products of many matrices."""

from __future__ import annotations

from typing import Any

from tilewright import te
from tilewright.ir.expr import Any as UnknownDimension
from tilewright.target import generic_func
from tilewright.te import Tensor
from tilewright.te.broadcast_shape import broadcast_index, broadcast_shapes
from tilewright.topi.nn.convolution import require_equal
from tilewright.topi.nn.utils import as_type, in_rewritten_layout, sum_types
from tilewright.topi.utils import InvalidShapeError, equal_const_int


def known_shape(out_type: Any) -> Any:
    """The shape of a result's type where all dimensions are known or symbolic; None where one is unknown."""
    unknown = any(isinstance(extent, UnknownDimension) for extent in out_type.shape)
    return None if unknown else out_type.shape


def batch_matmul(
    tensor_a: Tensor,
    tensor_b: Tensor,
    oshape: Any = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
    auto_scheduler_rewritten_layout: str = "",
) -> Tensor:
    """``A[b] @ B[b]`` for each ``b``, either matrix transposed before; a batch of one is used for all of the other's.

    ``oshape`` tells the shape of the output where the batch sizes are not known at compile time.
    """
    if auto_scheduler_rewritten_layout:
        return in_rewritten_layout(
            tensor_b,
            auto_scheduler_rewritten_layout,
            ["b", "j", "k"] if transpose_b else ["b", "k", "j"],
            lambda original: batch_matmul(tensor_a, original, oshape, out_dtype, transpose_a, transpose_b),
        )
    if len(tensor_a.shape) != 3 or len(tensor_b.shape) != 3:
        raise InvalidShapeError(
            "batch_matmul takes two tensors of three dimensions, "
            f"not {len(tensor_a.shape)} and {len(tensor_b.shape)}"
        )
    batch_a, *of_a = tensor_a.shape
    batch_b, *of_b = tensor_b.shape
    depth, rows = of_a if transpose_a else of_a[::-1]
    columns, other_depth = of_b if transpose_b else of_b[::-1]
    require_equal(depth, other_depth, "the summed dimensions of batch_matmul")
    if not equal_const_int(batch_a, 1) and not equal_const_int(batch_b, 1):
        require_equal(batch_a, batch_b, "the batches of batch_matmul")
    (batch,) = broadcast_shapes("batch_matmul", [batch_a], [batch_b])
    inner, result = sum_types(tensor_a.dtype, out_dtype)
    k = te.reduce_axis((0, depth), name="k")

    def element(b: Any, i: Any, j: Any) -> Any:
        (at_a,) = broadcast_index([b], [batch_a], [batch])
        (at_b,) = broadcast_index([b], [batch_b], [batch])
        left = tensor_a(at_a, k, i) if transpose_a else tensor_a(at_a, i, k)
        right = tensor_b(at_b, j, k) if transpose_b else tensor_b(at_b, k, j)
        return te.sum(left.astype(inner) * right.astype(inner), axis=k)

    letters = ("T" if transpose_a else "N") + ("T" if transpose_b else "N")
    made: Tensor = te.compute(
        oshape if oshape is not None else (batch, rows, columns),
        element,
        name=f"T_batch_matmul_{letters}",
        tag="batch_matmul",
        attrs={"layout_free_placeholders": [tensor_b]},
    )
    return as_type(made, result)


@generic_func
def batch_matmul_legalize(attrs: Any, inputs: Any, types: Any) -> Any:
    """A replacement that the target supports for a call that it does not, or None to keep the call."""
    return None
