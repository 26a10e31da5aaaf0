"""What graph tuners know about operators."""

from __future__ import annotations

from typing import Final

from tilewright.ir.op import Op

INVALID_LAYOUT_TIME: Final = 10.0
"""Seconds of a layout transform that is impossible."""

_BOUND_TO_NCHW: Final = (
    *("nn.adaptive_avg_pool2d", "nn.adaptive_max_pool2d", "nn.batch_flatten", "nn.dense", "reshape"),
    *("transpose", "split", "vision.multibox_prior", "vision.multibox_transform_loc"),
    *("vision.non_max_suppression", "vision.yolo_reorg", "nn.upsampling3d"),
)

OPT_OUT_OP: Final = [Op.get(name) for name in _BOUND_TO_NCHW]
"""Operators that need the original layout: what is behind them is planned separately."""
