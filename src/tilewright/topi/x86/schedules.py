"""Schedules by the names under which programs for x86 look for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.schedule.cpu.graph import has_tag
from tilewright.schedule.cpu.schedule import construct_schedule
from tilewright.schedule.cpu.transposed import TRANSPOSED, schedule_transposed
from tilewright.schedule.cpu.winograd import WINOGRAD, schedule_winograd
from tilewright.te.schedule.schedule import Schedule
from tilewright.topi.generic.default import Outputs, named
from tilewright.topi.generic.injective import schedule_injective_from_existing

__all__ = ["schedule_injective_from_existing"]


def _constructed(
    operator: str, tag: str | None = None, special: Callable[[Any], Schedule] = construct_schedule
) -> Callable[..., Schedule]:
    """The constructed schedule under an operator's name; a special one for what has a stage with this tag."""

    def schedule(outs: Outputs, *layouts: Any) -> Schedule:
        return (special if tag is None or has_tag(outs, tag) else construct_schedule)(outs)

    return named(schedule, operator)


schedule_injective = _constructed("injective")
schedule_elemwise = _constructed("elemwise")
schedule_broadcast = _constructed("broadcast")
schedule_concatenate = _constructed("concatenate")
schedule_reduce = _constructed("reduce")
schedule_softmax = _constructed("softmax")
schedule_pool = _constructed("pool")
schedule_adaptive_pool = _constructed("adaptive_pool")
schedule_conv1d_ncw = _constructed("conv1d_ncw")
schedule_conv1d_nwc = _constructed("conv1d_nwc")
schedule_group_conv1d_ncw = _constructed("group_conv1d_ncw")
schedule_group_conv1d_nwc = _constructed("group_conv1d_nwc")
schedule_conv2d_nchw = _constructed("conv2d_nchw")
schedule_conv2d_nhwc = _constructed("conv2d_nhwc")
schedule_conv2d_NCHWc = _constructed("conv2d_NCHWc")
schedule_conv2d_nchw_int8 = _constructed("conv2d_nchw_int8")
schedule_conv2d_NCHWc_int8 = _constructed("conv2d_NCHWc_int8")
schedule_conv2d_transpose_nchw = _constructed("conv2d_transpose_nchw")
schedule_conv2d_transpose_NCHWc = _constructed("conv2d_transpose_NCHWc", TRANSPOSED, schedule_transposed)
schedule_conv2d_winograd_NCHWc = _constructed("conv2d_winograd_NCHWc", WINOGRAD, schedule_winograd)
schedule_conv3d_ncdhw = _constructed("conv3d_ncdhw")
schedule_conv3d_ndhwc = _constructed("conv3d_ndhwc")
schedule_conv3d_transpose_ncdhw = _constructed("conv3d_transpose_ncdhw")
schedule_group_conv2d_nchw = _constructed("group_conv2d_nchw")
schedule_depthwise_conv2d_nchw = _constructed("depthwise_conv2d_nchw")
schedule_depthwise_conv2d_nhwc = _constructed("depthwise_conv2d_nhwc")
schedule_depthwise_conv2d_NCHWc = _constructed("depthwise_conv2d_NCHWc")
schedule_matmul = _constructed("matmul")
schedule_dense_nopack = _constructed("dense_nopack")
schedule_dense_pack = _constructed("dense_pack")
schedule_batch_matmul = _constructed("batch_matmul")
schedule_sparse_dense = _constructed("sparse_dense")
schedule_sparse_conv2d = _constructed("sparse_conv2d")
schedule_binarize_pack = _constructed("binarize_pack")
schedule_binary_dense = _constructed("binary_dense")
schedule_bitserial_conv2d_nchw = _constructed("bitserial_conv2d_nchw")
schedule_bitserial_conv2d_nhwc = _constructed("bitserial_conv2d_nhwc")
schedule_bitserial_dense = _constructed("bitserial_dense")
