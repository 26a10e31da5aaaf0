"""FoldScaleAxis: folds per-channel scales into the weights of neighbouring layers."""

from __future__ import annotations

from tilewright.ir.transform import Sequential
from tilewright.relay.transform.backward_fold_scale_axis import BackwardFoldScaleAxis
from tilewright.relay.transform.fold_constant import FoldConstant
from tilewright.relay.transform.forward_fold_scale_axis import ForwardFoldScaleAxis


def FoldScaleAxis() -> Sequential:
    """Into the layers before, then into those after; then the new weights are computed."""
    return Sequential([BackwardFoldScaleAxis(), ForwardFoldScaleAxis(), FoldConstant()], name="FoldScaleAxis")
