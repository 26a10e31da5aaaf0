"""FoldScaleAxis: folds per-channel scales into the weights of neighbouring layers."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.transform import Sequential
from tilewright.relay.transform.backward_fold_scale_axis import BackwardFoldScaleAxis
from tilewright.relay.transform.fold_constant import FoldConstant
from tilewright.relay.transform.forward_fold_scale_axis import ForwardFoldScaleAxis


@dataclass
class FoldScaleAxis(Sequential):
    """Fold factors into the weights of the layers before them, then of those after, and compute the new weights."""

    name = "FoldScaleAxis"

    def __post_init__(self) -> None:
        super().__init__(
            [BackwardFoldScaleAxis(), ForwardFoldScaleAxis(), FoldConstant()], name=type(self).name
        )
