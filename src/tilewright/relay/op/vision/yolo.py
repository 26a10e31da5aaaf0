"""The reorganisation of YOLO's passthrough layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import as_it_is
from tilewright.relay.op.shapes import combine, dims, require_multiple, tensor


@attributes
class YoloReorgAttrs(OpAttrs):
    """yolo_reorg: how far apart the pixels are that are gathered."""

    stride: int = 1


def reorg_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """Channels times the stride squared, height and width divided by it."""
    data = tensor(types[0], "the data")
    if data is None:
        return None
    if len(data.shape) != 4:
        raise RelationError(f"data are NCHW, not of {len(data.shape)} dimensions")
    batch, channels, height, width = dims(data)
    stride = attrs.stride
    for extent, divisor in ((channels, stride * stride), (height, stride), (width, stride)):
        require_multiple(extent, divisor, f"an extent of {extent} is not a multiple of {divisor}")
    shape = (
        batch,
        combine(lambda count: count * stride * stride, channels),
        combine(lambda extent: extent // stride, height),
        combine(lambda extent: extent // stride, width),
    )
    return TensorType(shape, data.dtype)


def _reorg_reference(attrs: Any, data: Any) -> Any:
    batch, channels, height, width = data.shape
    stride = attrs.stride
    fewer = channels // (stride * stride)
    # Darknet reads the data in another shape, and gathers every stride-th pixel of it.
    seen = data.reshape(batch, fewer, height, stride, width, stride).transpose(0, 3, 5, 1, 2, 4)
    return seen.reshape(batch, channels * stride * stride, height // stride, width // stride)


YOLO_REORG = define(
    "vision.yolo_reorg",
    arguments=("data",),
    attrs=YoloReorgAttrs,
    relation=reorg_relation,
    compute=lambda attrs, inputs, out_type: [topi.vision.reorg(inputs[0], attrs.stride)],
    reference=_reorg_reference,
    layout=as_it_is,
    kind=OpPattern.INJECTIVE,
    level=5,
    description="Pixels gathered into channels, as Darknet does.",
)


def yolo_reorg(data: RelayExpr, stride: int) -> Call:
    """(batch, channels, height, width) as (batch, channels * stride**2, height / stride, width / stride)."""
    return Call(YOLO_REORG, (data,), YoloReorgAttrs(stride))
