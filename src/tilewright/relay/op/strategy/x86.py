"""How operators are computed on processors: with packed weights and channels in blocks where that is faster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.relay.op.op import OpStrategy
from tilewright.relay.op.strategy import strategies
from tilewright.relay.op.strategy.strategies import is_depthwise_conv2d
from tilewright.relay.op.strategy.wrapping import (
    wrap_compute_batch_matmul,
    wrap_compute_conv2d,
    wrap_compute_conv2d_transpose,
    wrap_compute_dense,
    wrap_compute_dense_pack,
    wrap_topi_schedule,
)
from tilewright.support.dtype import DataType

PLAIN = ("NCHW", "OIHW")
"""The layouts for which there are computations that put channels into blocks."""


def _is_half(tensor: Any) -> bool:
    """True for floats of sixteen bits, which the plain computations add in float32."""
    kind = DataType(tensor.dtype)
    return kind.is_float and kind.bits == 16


def only(compute: Any, schedule: Any, name: str) -> OpStrategy:
    """The strategy of one implementation."""
    made = OpStrategy()
    made.add_implementation(compute, schedule, name=name)
    return made


def conv2d_strategy_cpu(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
    """NCHW through blocks of channels; other layouts as they are."""
    layouts = (attrs.data_layout, attrs.kernel_layout)
    if layouts != PLAIN or attrs.out_layout not in ("", "NCHW") or _is_half(inputs[0]):
        return strategies.conv2d_strategy.fdefault(attrs, inputs, out_type, target)  # type: ignore[no-any-return]
    if is_depthwise_conv2d(inputs[0].shape, "NCHW", inputs[1].shape, "OIHW", attrs.groups):
        return only(
            wrap_compute_conv2d(topi.x86.depthwise_conv2d_nchw),
            wrap_topi_schedule(topi.x86.schedule_depthwise_conv2d_nchw),
            "depthwise_conv2d_nchw.x86",
        )
    if attrs.groups == 1:
        return only(
            wrap_compute_conv2d(topi.x86.conv2d_nchw),
            wrap_topi_schedule(topi.x86.schedule_conv2d_nchw),
            "conv2d_nchw.x86",
        )
    return only(
        wrap_compute_conv2d(topi.x86.group_conv2d_nchw, has_groups=True),
        wrap_topi_schedule(topi.x86.schedule_group_conv2d_nchw),
        "group_conv2d_nchw.x86",
    )


def dense_strategy_cpu(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
    """Few rows as dot products, many with the weight packed on the way."""
    return only(
        wrap_compute_dense(topi.x86.dense), wrap_topi_schedule(topi.x86.schedule_dense_pack), "dense.x86"
    )


def dense_pack_strategy_cpu(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
    """A weight that is packed already."""
    return only(
        wrap_compute_dense_pack(topi.x86.dense_pack),
        wrap_topi_schedule(topi.x86.schedule_dense_pack),
        "dense_pack.x86",
    )


def batch_matmul_strategy_cpu(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
    """A transposed second matrix is turned first where many rows read it."""
    return only(
        wrap_compute_batch_matmul(topi.x86.batch_matmul),
        wrap_topi_schedule(topi.x86.schedule_batch_matmul),
        "batch_matmul.x86",
    )


def conv2d_NCHWc_strategy_cpu(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
    """In words where the weight is packed into them; others as they are defined."""
    if len(inputs[1].shape) != 7:
        default = strategies.conv2d_NCHWc_strategy.fdefault
        return default(attrs, inputs, out_type, target)  # type: ignore[no-any-return]
    numbers = topi.utils.get_const_int(inputs[1].shape[6])
    result = attrs.out_dtype or str(inputs[0].dtype)

    def compute(data: Any, weight: Any, *window: Any) -> Any:
        strides, padding, dilation, layout, out_layout, _ = window
        given = (strides, padding, dilation, layout, out_layout, result, numbers)
        return topi.x86.conv2d_NCHWc_int8(data, weight, *given)

    return only(
        wrap_compute_conv2d(compute, need_data_layout=True, need_out_layout=True),
        wrap_topi_schedule(topi.x86.schedule_conv2d_NCHWc_int8),
        "conv2d_NCHWc_int8.x86",
    )


def conv2d_winograd_strategy_cpu(attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any) -> OpStrategy:
    """A packed weight with the channels of the data in blocks; others as they are."""
    default = strategies.conv2d_winograd_without_weight_transfrom_strategy.fdefault
    packed = len(inputs[1].shape) == 5 and len(inputs[0].shape) == 5 and len(out_type.shape) == 5
    if not packed or tuple(attrs.kernel_size) != (3, 3):
        return default(attrs, inputs, out_type, target)  # type: ignore[no-any-return]
    return only(
        wrap_compute_conv2d(topi.x86.conv2d_winograd_NCHWc),
        wrap_topi_schedule(topi.x86.schedule_conv2d_winograd_NCHWc),
        "conv2d_winograd_NCHWc.x86",
    )


def conv2d_transpose_strategy_cpu(
    attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any
) -> OpStrategy:
    """With channels in blocks, an ordinary convolution for each phase of the result; others as they are."""
    blocked = len(inputs[0].shape) == 5 and len(inputs[1].shape) == 6 and len(out_type.shape) == 5
    if not blocked or attrs.groups != 1 or set(attrs.dilation) != {1}:
        return strategies.conv2d_transpose_strategy.fdefault(  # type: ignore[no-any-return]
            attrs, inputs, out_type, target
        )
    return only(
        wrap_compute_conv2d_transpose(topi.x86.conv2d_transpose_NCHWc),
        wrap_topi_schedule(topi.x86.schedule_conv2d_transpose_NCHWc),
        "conv2d_transpose_NCHWc.x86",
    )


def depthwise_conv2d_NCHWc_strategy_cpu(
    attrs: Any, inputs: Sequence[Any], out_type: Any, target: Any
) -> OpStrategy:
    """Without a padded copy where the image is wide."""
    return only(
        wrap_compute_conv2d(topi.x86.depthwise_conv2d_NCHWc, need_data_layout=True, need_out_layout=True),
        wrap_topi_schedule(topi.x86.schedule_depthwise_conv2d_NCHWc),
        "depthwise_conv2d_NCHWc.x86",
    )


strategies.conv2d_transpose_strategy.register("cpu", conv2d_transpose_strategy_cpu)
strategies.depthwise_conv2d_NCHWc_strategy.register("cpu", depthwise_conv2d_NCHWc_strategy_cpu)
strategies.conv2d_winograd_without_weight_transfrom_strategy.register("cpu", conv2d_winograd_strategy_cpu)
strategies.conv2d_NCHWc_strategy.register("cpu", conv2d_NCHWc_strategy_cpu)
strategies.conv2d_strategy.register("cpu", conv2d_strategy_cpu)
strategies.dense_strategy.register("cpu", dense_strategy_cpu)
strategies.dense_pack_strategy.register("cpu", dense_pack_strategy_cpu)
strategies.batch_matmul_strategy.register("cpu", batch_matmul_strategy_cpu)
