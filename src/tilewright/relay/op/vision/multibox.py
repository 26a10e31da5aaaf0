"""Operators of single-shot detectors: prior boxes, and boxes decoded from predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, TupleWrapper
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import as_it_is
from tilewright.relay.op.shapes import combine, dims, product, same, tensor, tensors


@attributes
class MultiBoxPriorAttrs(OpAttrs):
    """multibox_prior: sizes and ratios of the boxes, and where a pixel's centre is."""

    sizes: Any = (1.0,)
    ratios: Any = (1.0,)
    steps: Any = (-1.0, -1.0)
    offsets: Any = (0.5, 0.5)
    clip: bool = False


@attributes
class MultiBoxTransformLocAttrs(OpAttrs):
    """multibox_transform_loc: which boxes count, and the scale of the predictions."""

    clip: bool = True
    threshold: float = 0.01
    variances: Any = (0.1, 0.1, 0.2, 0.2)


def prior_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """(1, height * width * boxes of a pixel, 4)."""
    data = tensor(types[0], "the data")
    if data is None:
        return None
    if len(data.shape) != 4:
        raise RelationError(f"data are NCHW, not of {len(data.shape)} dimensions")
    count = len(attrs.sizes) + len(attrs.ratios) - 1
    return TensorType((1, product((*dims(data)[2:], count)), 4), data.dtype)


def _prior_reference(attrs: Any, data: Any) -> Any:
    height, width = data.shape[2:]
    step_y, step_x = (
        step if step > 0 else 1 / size for step, size in zip(attrs.steps, (height, width), strict=True)
    )
    y = (np.arange(height) + attrs.offsets[0]) * step_y
    x = (np.arange(width) + attrs.offsets[1]) * step_x
    first = attrs.sizes[0]
    halves = [(size / 2, size / 2 * height / width) for size in attrs.sizes]
    halves += [
        (first / np.sqrt(ratio) / 2, first * np.sqrt(ratio) / 2 * height / width)
        for ratio in attrs.ratios[1:]
    ]
    made = np.zeros((height, width, len(halves), 4))
    for number, (along, across) in enumerate(halves):
        made[:, :, number, 0] = x - across
        made[:, :, number, 1] = (y - along)[:, None]
        made[:, :, number, 2] = x + across
        made[:, :, number, 3] = (y + along)[:, None]
    if attrs.clip:
        made = np.clip(made, 0, 1)
    return made.reshape(1, -1, 4).astype(data.dtype)


MULTIBOX_PRIOR = define(
    "vision.multibox_prior",
    arguments=("data",),
    attrs=MultiBoxPriorAttrs,
    relation=prior_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.vision.multibox_prior(
            inputs[0], attrs.sizes, attrs.ratios, attrs.steps, attrs.offsets, attrs.clip
        )
    ],
    reference=_prior_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=5,
    description="Boxes around each pixel of a feature map.",
)


def multibox_prior(
    data: RelayExpr,
    sizes: Any = (1.0,),
    ratios: Any = (1.0,),
    steps: Any = (-1.0, -1.0),
    offsets: Any = (0.5, 0.5),
    clip: bool = False,
) -> Call:
    """Boxes around each pixel of an NCHW feature map, in parts of the image: one of each size, one of the first size
    for each ratio but the first."""
    attrs = MultiBoxPriorAttrs(_numbers(sizes), _numbers(ratios), _numbers(steps), _numbers(offsets), clip)
    return Call(MULTIBOX_PRIOR, (data,), attrs)


def _numbers(values: Any) -> tuple[float, ...]:
    return tuple(float(value) for value in (values if isinstance(values, (list, tuple)) else (values,)))


def transform_loc_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """The boxes (batch, anchors, 6), and how many count."""
    found = tensors(types, "the probabilities", "the predictions", "the anchors")
    if found is None:
        return None
    probabilities, predictions, anchors = found
    if [len(each.shape) for each in found] != [3, 2, 3]:
        raise RelationError(
            "probabilities are (batch, classes, anchors), predictions (batch, anchors * 4), anchors (1, anchors, 4)"
        )
    batch, _, count = dims(probabilities)
    same(dims(predictions)[0], batch, "the batches of probabilities and predictions")
    same(dims(predictions)[1], combine(lambda boxes: boxes * 4, count), "the predictions, four an anchor")
    same(dims(anchors)[1], count, "the anchors")
    return TupleType((TensorType((batch, count, 6), probabilities.dtype), TensorType((batch,), "int32")))


def _transform_loc_reference(attrs: Any, probabilities: Any, predictions: Any, anchors: Any) -> Any:
    batch, _, count = probabilities.shape
    made = np.full((batch, count, 6), -1.0)
    counts = np.zeros(batch, "int32")
    left, top, right, bottom = anchors[0].astype(np.float64).T
    width, height = right - left, bottom - top
    for n in range(batch):
        moves = predictions[n].reshape(-1, 4) * np.asarray(attrs.variances)
        x, y = moves[:, 0] * width + (left + right) / 2, moves[:, 1] * height + (top + bottom) / 2
        across, along = np.exp(moves[:, 2]) * width / 2, np.exp(moves[:, 3]) * height / 2
        boxes = np.stack([x - across, y - along, x + across, y + along], axis=1)
        if attrs.clip:
            boxes = np.clip(boxes, 0, 1)
        foreground = probabilities[n, 1:]
        best = foreground.argmax(axis=0)
        score = foreground.max(axis=0)
        for j in np.flatnonzero((score > -1) & (score >= np.float32(attrs.threshold))):
            made[n, counts[n]] = [best[j], score[j], *boxes[j]]
            counts[n] += 1
    return made.astype(probabilities.dtype), counts


MULTIBOX_TRANSFORM_LOC = define(
    "vision.multibox_transform_loc",
    arguments=("cls_prob", "loc_pred", "anchor"),
    attrs=MultiBoxTransformLocAttrs,
    relation=transform_loc_relation,
    compute=lambda attrs, inputs, out_type: list(
        topi.vision.multibox_transform_loc(
            inputs[0], inputs[1], inputs[2], attrs.clip, attrs.threshold, attrs.variances
        )
    ),
    reference=_transform_loc_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=5,
    description="Boxes decoded from anchors.",
)


def multibox_transform_loc(
    cls_prob: RelayExpr,
    loc_pred: RelayExpr,
    anchor: RelayExpr,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Any = (0.1, 0.1, 0.2, 0.2),
) -> TupleWrapper:
    """Boxes (class, score, left, top, right, bottom) decoded from anchors, those above the threshold in front; and how
    many they are."""
    attrs = MultiBoxTransformLocAttrs(clip, float(threshold), _numbers(variances))
    return TupleWrapper(Call(MULTIBOX_TRANSFORM_LOC, (cls_prob, loc_pred, anchor), attrs), 2)
