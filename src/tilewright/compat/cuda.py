"""The computations of ``topi.cuda``: those of ``topi``, whose schedules for a GPU are constructed from the device."""

from __future__ import annotations

from typing import Any, Final

from tilewright import topi
from tilewright.ir import operators
from tilewright.ir.expr import IntImm
from tilewright.support.errors import ExpressionError
from tilewright.te import Tensor, compute
from tilewright.tir import if_then_else
from tilewright.topi import nn, threads, vision
from tilewright.topi.threads.scatter import has_atomic_add


def _fits(data: Tensor, axis: int) -> bool:
    """True if shared memory holds a row of a known length."""
    extent = data.shape[axis]
    return isinstance(extent, IntImm) and 0 < extent.value <= threads.longest_row(data.dtype)


def sort(data: Tensor, axis: int = -1, is_ascend: int = 1) -> Tensor:
    """The values in order along an axis: a block sorts a row, where shared memory holds it."""
    return threads.sort(data, axis, is_ascend) if _fits(data, axis) else topi.sort(data, axis, is_ascend)


def argsort(
    data: Tensor,
    valid_count: Tensor | None = None,
    axis: int = -1,
    is_ascend: int = 1,
    dtype: str = "float32",
) -> Tensor:
    """The positions of the values in order along an axis."""
    if valid_count is None and _fits(data, axis):
        return threads.argsort(data, axis, is_ascend, dtype)
    return topi.argsort(data, valid_count, axis, is_ascend, dtype)


def topk(
    data: Tensor,
    k: Any = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> Any:
    """The first k values in order along an axis, their positions, or both."""
    if not isinstance(k, int) or not _fits(data, axis):
        return topi.topk(data, k, axis, ret_type, is_ascend, dtype)
    made = threads.topk(data, k, axis, ret_type, is_ascend, dtype)
    return made if ret_type == "both" else made[0]


def cumsum(
    data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> Tensor:
    """The running sum: a block computes a row."""
    return threads.scan_rows(data, operators.add, 0, "cumsum", axis, dtype, exclusive)


def sort_by_key(
    keys: Tensor, values: Tensor, axis: int = -1, is_ascend: bool = True
) -> tuple[Tensor, Tensor]:
    """The keys in order along an axis, and the values in the same order; those of equal keys keep theirs."""
    order = argsort(keys, None, axis, int(is_ascend), "int32")
    return topi.gather(keys, axis, order), topi.gather(values, axis, order)


def stable_sort_by_key_thrust(
    keys: Tensor, values: Tensor, for_scatter: bool = False
) -> tuple[Tensor, Tensor]:
    """As ``sort_by_key``. With ``for_scatter``, keys may be negative positions, and the values are the keys' order."""
    if for_scatter:
        extent = keys.shape[-1]
        keys = compute(
            keys.shape,
            lambda *at: if_then_else(keys(*at) < 0, keys(*at) + extent, keys(*at)),
            name="positive",
        )
        values = compute(keys.shape, lambda *at: operators.cast(values.dtype, at[-1]), name="positions")
    return sort_by_key(keys, values)


def _scan(
    data: Tensor, axis: int, output_dtype: Any, binop: Any, identity_value: Any, exclusive: bool
) -> Tensor:
    return threads.scan_rows(data, binop, identity_value, "scan", axis, output_dtype, exclusive)


def inclusive_scan(
    data: Tensor,
    axis: int = -1,
    output_dtype: str | None = None,
    binop: Any = operators.add,
    identity_value: Any = 0,
) -> Tensor:
    """What ``binop`` makes of all elements up to each one, that one included."""
    return _scan(data, axis, output_dtype, binop, identity_value, False)


def exclusive_scan(
    data: Tensor,
    axis: int = -1,
    return_reduction: bool = False,
    output_dtype: str | None = None,
    binop: Any = operators.add,
    identity_value: Any = 0,
) -> Any:
    """What ``binop`` makes of all elements before each one; with ``return_reduction``, and of all elements."""
    made = _scan(data, axis, output_dtype, binop, identity_value, True)
    if not return_reduction:
        return made
    position = axis % len(data.shape)
    last = data.shape[position] - 1
    kept = [extent for number, extent in enumerate(data.shape) if number != position]

    def total(*at: Any) -> Any:
        place = (*at[:position], last, *at[position:])
        return binop(made(*place), operators.cast(made.dtype, data(*place)))

    return made, compute(kept, total, name="reduction")


def scan_thrust(
    data: Tensor,
    output_dtype: str,
    exclusive: bool = True,
    return_reduction: bool = False,
    binop: Any = operators.add,
) -> Any:
    """A scan along the last axis."""
    if exclusive:
        return exclusive_scan(data, -1, return_reduction, output_dtype, binop)
    return inclusive_scan(data, -1, output_dtype, binop)


def conv2d_hwnc_tensorcore(
    data: Tensor,
    kernel: Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    in_dtype: str,
    out_dtype: str = "int32",
) -> Tensor:
    """The convolution of HWNC with HWOI, of few bits: images are moved to NHWC and back."""
    if len(data.shape) != 4 or len(kernel.shape) != 4:
        raise ExpressionError("conv2d_hwnc_tensorcore takes HWNC and HWOI, neither packed")
    images, weights = topi.transpose(data, (2, 0, 1, 3)), topi.transpose(kernel, (0, 1, 3, 2))
    if data.dtype != in_dtype:
        images, weights = topi.cast(images, in_dtype), topi.cast(weights, in_dtype)
    return topi.transpose(
        nn.conv2d_nhwc(images, weights, strides, padding, dilation, out_dtype), (1, 2, 0, 3)
    )


def scatter_add(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0) -> Tensor:
    """The data with updates added at indices, by atomic additions where the device has them."""
    if has_atomic_add(data.dtype):
        return threads.scatter_add_elements(data, indices, updates, axis)
    return topi.scatter_add(data, indices, updates, axis)


COMPUTATIONS: Final[dict[str, Any]] = {
    **{
        name: getattr(nn, name)
        for name in (
            *("batch_matmul", "conv1d_ncw", "conv1d_nwc", "conv1d_transpose_ncw", "group_conv1d_ncw"),
            *("conv2d_NCHWc_int8", "conv2d_hwcn", "conv2d_nchw", "conv2d_nhwc", "conv2d_transpose_nchw"),
            *("conv2d_winograd_nchw", "conv2d_winograd_nhwc", "group_conv2d_nchw"),
            *("conv3d_ncdhw", "conv3d_ndhwc", "conv3d_transpose_ncdhw"),
            *("deformable_conv2d_nchw", "deformable_conv2d_nhwc", "depthwise_conv2d_nchw"),
            *("depthwise_conv2d_nhwc", "sparse_dense", "correlation_nchw"),
        )
    },
    # One schedule serves products of any size: the tile follows the shape.
    **{name: nn.dense for name in ("dense_large_batch", "dense_small_batch", "dense_int8")},
    "batch_matmul_int8": nn.batch_matmul,
    "conv2d_nchw_winograd": nn.conv2d_winograd_nchw,
    "conv2d_hwnc_tensorcore": conv2d_hwnc_tensorcore,
    "conv2d_nchw_int8": nn.conv2d_nchw,
    "conv2d_nhwc_winograd_direct": nn.conv2d_winograd_nhwc,
    "conv2d_nhwc_winograd_tensorcore": nn.conv2d_winograd_nhwc,
    "conv3d_ncdhw_winograd": nn.conv3d_ncdhw,
    "dense_tensorcore": nn.dense,
    "batch_matmul_tensorcore": nn.batch_matmul,
    "conv2d_nhwc_tensorcore": nn.conv2d_nhwc,
    "conv3d_ndhwc_tensorcore": nn.conv3d_ndhwc,
    **{
        name: getattr(topi, name)
        for name in (
            *("argwhere", "cumprod", "invert_permutation", "scatter", "scatter_nd", "searchsorted"),
            *("sparse_fill_empty_rows", "sparse_reshape", "unique"),
        )
    },
    "argsort": argsort,
    "cumsum": cumsum,
    "scatter_add": scatter_add,
    "exclusive_scan": exclusive_scan,
    "inclusive_scan": inclusive_scan,
    "scan_thrust": scan_thrust,
    "sort": sort,
    "sort_by_key": sort_by_key,
    "stable_sort_by_key_thrust": stable_sort_by_key_thrust,
    "topk": topk,
    **{
        name: getattr(vision, name)
        for name in (
            *("all_class_non_max_suppression", "get_valid_counts", "multibox_detection", "multibox_prior"),
            *("multibox_transform_loc", "non_max_suppression", "proposal", "roi_align_nchw"),
        )
    },
}
"""What TVM has under ``topi.cuda``, by name."""

SCHEDULES: Final = (
    *("adaptive_pool", "argsort", "argwhere", "batch_matmul", "batch_matmul_int8", "batch_matmul_tensorcore"),
    *("bitserial_conv2d_nchw", "bitserial_conv2d_nhwc", "broadcast", "conv1d_ncw", "conv1d_nwc"),
    *("conv1d_transpose_ncw", "conv2d_NCHWc_int8", "conv2d_hwcn", "conv2d_nchw", "conv2d_nchw_winograd"),
    *("conv2d_hwnc_tensorcore", "conv2d_nchw_int8", "conv2d_nhwc_winograd_direct"),
    *("conv2d_nhwc_winograd_tensorcore", "conv3d_ncdhw_winograd", "sparse_dense_padded"),
    *("conv2d_nhwc", "conv2d_nhwc_tensorcore", "conv2d_transpose_nchw", "conv2d_winograd_nhwc"),
    *("conv3d_ncdhw", "conv3d_ndhwc", "conv3d_ndhwc_tensorcore", "conv3d_transpose_ncdhw"),
    *("correlation_nchw", "cumprod", "cumsum", "deformable_conv2d_nchw", "deformable_conv2d_nhwc"),
    *("dense_int8", "dense_large_batch", "dense_small_batch", "dense_tensorcore"),
    *("depthwise_conv2d_backward_input_nhwc", "depthwise_conv2d_backward_weight_nhwc"),
    *("depthwise_conv2d_nchw", "depthwise_conv2d_nhwc", "elemwise", "extern", "get_valid_counts"),
    *("group_conv1d_ncw",),
    *("group_conv2d_nchw", "injective", "invert_permutation", "l2_normalize", "lrn", "multibox_detection"),
    *("multibox_prior", "multibox_transform_loc", "nms", "pool", "pool_grad", "proposal", "reduce", "reorg"),
    *("roi_align", "roi_pool", "scan", "scatter", "scatter_add", "scatter_nd", "searchsorted", "softmax"),
    *("sort", "sparse_dense", "topk", "transpose", "unique", "upsampling"),
)
"""The names of ``topi.cuda``'s schedules."""
