"""The schedules of operators, (attrs, outs, target), where a target says nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright import te, topi
from tilewright.relay.op.strategy.wrapping import wrap_topi_schedule
from tilewright.target import override_native_generic_func
from tilewright.target.generic_func import DispatchedFunction


def naive_schedule(_: Any, outs: Any, target: Any) -> Any:
    """Loops as the computation says, nothing inlined and nothing moved."""
    outputs = outs if isinstance(outs, (list, tuple)) else [outs]
    return te.create_schedule([output.op for output in outputs])


def _scheduled(name: str, topi_schedule: Callable[[Any], Any]) -> DispatchedFunction:
    under_target = wrap_topi_schedule(topi_schedule)

    def schedule(attrs: Any, outs: Any, target: Any) -> Any:
        return under_target(attrs, outs, target)

    schedule.__name__ = schedule.__qualname__ = name
    schedule.__doc__ = "(attrs, outs, target) to a schedule."
    return override_native_generic_func(name)(schedule)


schedule_injective = _scheduled("schedule_injective", topi.generic.schedule_injective)
schedule_reduce = _scheduled("schedule_reduce", topi.generic.schedule_reduce)
schedule_concatenate = _scheduled("schedule_concatenate", topi.generic.schedule_injective)
schedule_transpose = _scheduled("schedule_transpose", topi.generic.schedule_injective)
schedule_pool = _scheduled("schedule_pool", topi.generic.schedule_pool)
schedule_pool_grad = _scheduled("schedule_pool_grad", topi.generic.schedule_pool)
schedule_adaptive_pool = _scheduled("schedule_adaptive_pool", topi.generic.schedule_adaptive_pool)
schedule_lrn = _scheduled("schedule_lrn", topi.generic.schedule_lrn)
schedule_bitpack = _scheduled("schedule_bitpack", topi.generic.schedule_default)
schedule_roi_pool = _scheduled("schedule_roi_pool", topi.generic.schedule_roi_pool)
schedule_sparse_transpose = _scheduled("schedule_sparse_transpose", topi.generic.schedule_sparse_transpose)
schedule_conv2d_winograd_weight_transform = _scheduled(
    "schedule_conv2d_winograd_weight_transform", topi.generic.schedule_conv2d_winograd_weight_transform
)
schedule_conv2d_winograd_nnpack_weight_transform = _scheduled(
    "schedule_conv2d_winograd_nnpack_weight_transform",
    topi.generic.schedule_conv2d_winograd_nnpack_weight_transform,
)
schedule_conv2d_gemm_weight_transform = _scheduled(
    "schedule_conv2d_gemm_weight_transform", topi.generic.schedule_conv2d_gemm_weight_transform
)
schedule_conv3d_winograd_weight_transform = _scheduled(
    "schedule_conv3d_winograd_weight_transform", topi.generic.schedule_conv3d_winograd_weight_transform
)
