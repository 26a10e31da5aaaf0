"""Which strategy, schedule and preferred layout belong to which operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright import topi
from tilewright.relay.op.op import (
    register_alter_op_layout,
    register_legalize,
    register_schedule,
    register_strategy,
)
from tilewright.relay.op.strategy import schedules, strategies

STRATEGIES = {
    "nn.conv1d": strategies.conv1d_strategy,
    "nn.conv2d": strategies.conv2d_strategy,
    "nn.conv3d": strategies.conv3d_strategy,
    "nn.conv1d_transpose": strategies.conv1d_transpose_strategy,
    "nn.conv2d_transpose": strategies.conv2d_transpose_strategy,
    "nn.conv3d_transpose": strategies.conv3d_transpose_strategy,
    "nn.contrib_conv2d_NCHWc": strategies.conv2d_NCHWc_strategy,
    "nn.contrib_depthwise_conv2d_NCHWc": strategies.depthwise_conv2d_NCHWc_strategy,
    "nn.contrib_conv2d_winograd_without_weight_transform": (
        strategies.conv2d_winograd_without_weight_transfrom_strategy
    ),
    "nn.contrib_conv3d_winograd_without_weight_transform": (
        strategies.conv3d_winograd_without_weight_transfrom_strategy
    ),
    "nn.contrib_conv2d_gemm_without_weight_transform": (
        strategies.conv2d_gemm_without_weight_transform_strategy
    ),
    "nn.deformable_conv2d": strategies.deformable_conv2d_strategy,
    "nn.dense": strategies.dense_strategy,
    "nn.matmul": strategies.matmul_strategy,
    "nn.contrib_dense_pack": strategies.dense_pack_strategy,
    "nn.batch_matmul": strategies.batch_matmul_strategy,
    "nn.softmax": strategies.softmax_strategy,
    "nn.fast_softmax": strategies.fast_softmax_strategy,
    "nn.log_softmax": strategies.log_softmax_strategy,
    "nn.sparse_dense": strategies.sparse_dense_strategy,
    "nn.internal.sparse_dense_padded": strategies.sparse_dense_padded_strategy,
    "nn.sparse_add": strategies.sparse_add_strategy,
    "nn.sparse_conv2d": strategies.sparse_conv2d_strategy,
    "nn.correlation": strategies.correlation_strategy,
    "nn.bitserial_conv2d": strategies.bitserial_conv2d_strategy,
    "nn.bitserial_dense": strategies.bitserial_dense_strategy,
    "image.dilation2d": strategies.dilation2d_strategy,
    "vision.multibox_prior": strategies.multibox_prior_strategy,
    "vision.multibox_transform_loc": strategies.multibox_transform_loc_strategy,
    "vision.get_valid_counts": strategies.get_valid_counts_strategy,
    "vision.non_max_suppression": strategies.nms_strategy,
    "vision.all_class_non_max_suppression": strategies.all_class_nms_strategy,
    "vision.roi_align": strategies.roi_align_strategy,
    "vision.proposal": strategies.proposal_strategy,
    "sort": strategies.sort_strategy,
    "argsort": strategies.argsort_strategy,
    "topk": strategies.topk_strategy,
    "searchsorted": strategies.searchsorted_strategy,
    "scatter": strategies.scatter_strategy,
    "scatter_add": strategies.scatter_add_strategy,
    "scatter_nd": strategies.scatter_nd_strategy,
    "cumsum": strategies.cumsum_strategy,
    "cumprod": strategies.cumprod_strategy,
    "unique": strategies.unique_strategy,
    "argwhere": strategies.argwhere_strategy,
    "invert_permutation": strategies.invert_permutation_strategy,
    "einsum": strategies.einsum_strategy,
    "sparse_fill_empty_rows": strategies.sparse_fill_empty_rows_strategy,
    "sparse_reshape": strategies.sparse_reshape_strategy,
    "random.threefry_generate": strategies.threefry_generate_strategy,
    "random.threefry_split": strategies.threefry_split_strategy,
    "random.uniform": strategies.uniform_strategy,
}

SCHEDULES = {
    **{f"nn.{kind}_pool{rank}d": schedules.schedule_pool for kind in ("max", "avg") for rank in (1, 2, 3)},
    **{f"nn.global_{kind}_pool2d": schedules.schedule_adaptive_pool for kind in ("max", "avg")},
    **{
        f"nn.adaptive_{kind}_pool{rank}d": schedules.schedule_adaptive_pool
        for kind in ("max", "avg")
        for rank in (1, 2, 3)
    },
    "nn.max_pool2d_grad": schedules.schedule_pool_grad,
    "nn.avg_pool2d_grad": schedules.schedule_pool_grad,
    "nn.lrn": schedules.schedule_lrn,
    "nn.bitpack": schedules.schedule_bitpack,
    "nn.sparse_transpose": schedules.schedule_sparse_transpose,
    "nn.contrib_conv2d_winograd_weight_transform": schedules.schedule_conv2d_winograd_weight_transform,
    "nn.contrib_conv2d_gemm_weight_transform": schedules.schedule_conv2d_gemm_weight_transform,
    "nn.contrib_conv3d_winograd_weight_transform": schedules.schedule_conv3d_winograd_weight_transform,
    "vision.roi_pool": schedules.schedule_roi_pool,
    "concatenate": schedules.schedule_concatenate,
    "transpose": schedules.schedule_transpose,
}


def _asks(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a pass asks about an operator, answered by a generic function of ``topi``."""

    def asked(attrs: Any, inputs: Sequence[Any], *rest: Any) -> Any:
        return function(attrs, inputs, *rest)

    return asked


ALTER_LAYOUT = {
    "nn.conv2d": topi.nn.conv2d_alter_layout,
    "nn.conv2d_transpose": topi.nn.conv2d_transpose_alter_layout,
    "nn.conv3d": topi.nn.conv3d_alter_layout,
    "nn.dense": topi.nn.dense_alter_layout,
    "nn.sparse_dense": topi.nn.sparse_dense_alter_layout,
}

LEGALIZE = {
    "nn.conv2d": topi.nn.conv2d_legalize,
    "nn.conv1d_transpose": topi.nn.conv1d_transpose_legalize,
    "nn.conv2d_transpose": topi.nn.conv2d_transpose_legalize,
    "nn.conv3d_transpose": topi.nn.conv3d_transpose_legalize,
    "nn.dense": topi.nn.dense_legalize,
    "nn.matmul": topi.nn.matmul_legalize,
    "nn.batch_matmul": topi.nn.batch_matmul_legalize,
    "nn.bitserial_conv2d": topi.nn.bitserial_conv2d_legalize,
}


def register_all() -> None:
    """Tell the operators."""
    for name, strategy in STRATEGIES.items():
        register_strategy(name, strategy.generic)
    for name, schedule in SCHEDULES.items():
        register_schedule(name, schedule)
    for name, alter in ALTER_LAYOUT.items():
        register_alter_op_layout(name, _asks(alter))
    for name, legalize in LEGALIZE.items():
        register_legalize(name, _asks(legalize))


register_all()
