"""ROI align, ROI pooling, and region proposals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import Layouts, MaybeLayout, as_it_is
from tilewright.relay.op.nn.layout_conversion import converted, converted_array, laid_out, whole_extents
from tilewright.relay.op.nn.windows import per_axis
from tilewright.relay.op.op import register_convert_op_layout
from tilewright.relay.op.shapes import combine, dims, require_source, same, tensor, tensors
from tilewright.relay.op.vision.boxes import overlap
from tilewright.te.tensor import Tensor
from tilewright.tir.data_layout import Layout
from tilewright.topi.vision.rcnn.proposal import generate_anchor


@attributes
class ROIAlignAttrs(OpAttrs):
    """roi_align: the size to pool to, the image's scale, and how many places are read for an element."""

    pooled_size: Any = ()
    spatial_scale: float = 1.0
    sample_ratio: int = -1
    layout: str = "NCHW"
    mode: str = "avg"
    aligned: bool = False


@attributes
class ROIPoolAttrs(OpAttrs):
    """roi_pool: the size to pool to, and the image's scale."""

    pooled_size: Any = ()
    spatial_scale: float = 1.0
    layout: str = "NCHW"


@attributes
class ProposalAttrs(OpAttrs):
    """proposal: the anchors, and how many boxes are considered and selected."""

    scales: Any = ()
    ratios: Any = ()
    feature_stride: int = 16
    threshold: float = 0.7
    rpn_pre_nms_top_n: int = 6000
    rpn_post_nms_top_n: int = 300
    rpn_min_size: int = 16
    iou_loss: bool = False


def roi_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """An image of the pooled size for each region."""
    data, rois = tensor(types[0], "the data"), tensor(types[1], "the regions")
    if data is None or rois is None:
        return None
    batch, channels, height, width = whole_extents(dims(data), attrs.layout, "NCHW", "the data")
    if len(rois.shape) != 2:
        raise RelationError(f"regions are (regions, 5), not of {len(rois.shape)} dimensions")
    same(dims(rois)[1], 5, "the values of a region")
    sizes = per_axis(attrs.pooled_size, 2, "pooled_size")
    require_source(
        (batch, height, width), (dims(rois)[0], channels, *sizes), f"there are no pixels in {data} to read"
    )
    shape = laid_out((dims(rois)[0], channels, *sizes), "NCHW", attrs.layout, "the result")
    return TensorType(shape, data.dtype)


def _roi_layouts(
    attrs: Any, offered: Sequence[MaybeLayout], original: Sequence[MaybeLayout], types: Sequence[Any]
) -> Layouts:
    data = Layout(attrs.layout)
    return Layouts((data, original[1] if len(original) > 1 else None), (data,), attrs)


def _read(image: Any, y: float, x: float, join: Any) -> Any:
    """The four weighted pixels around a place joined, for each channel; up to one pixel outside an image is its edge,
    farther zero."""
    height, width = image.shape[1:]
    if y < -1 or x < -1 or y > height or x > width:
        return np.zeros(len(image))
    y, x = min(max(y, 0.0), height - 1), min(max(x, 0.0), width - 1)
    top, left = int(np.floor(y)), int(np.floor(x))
    down, right = min(top + 1, height - 1), min(left + 1, width - 1)
    part_y, part_x = y - top, x - left
    corners = [
        image[:, row, column] * weight_y * weight_x
        for row, weight_y in ((top, 1 - part_y), (down, part_y))
        for column, weight_x in ((left, 1 - part_x), (right, part_x))
    ]
    return join(corners, axis=0)


def _roi_align_reference(attrs: Any, data: Any, rois: Any) -> Any:
    images = converted_array(data, attrs.layout, "NCHW").astype(np.float64)
    rows, columns = per_axis(attrs.pooled_size, 2, "pooled_size")
    made = np.zeros((len(rois), images.shape[1], rows, columns))
    for number, roi in enumerate(rois.astype(np.float64)):
        if roi[0] < 0:
            continue
        left, top, right, bottom = roi[1:] * attrs.spatial_scale - (0.5 if attrs.aligned else 0.0)
        width, height = right - left, bottom - top
        if not attrs.aligned:
            width, height = max(width, 1.0), max(height, 1.0)
        down = attrs.sample_ratio if attrs.sample_ratio > 0 else int(np.ceil(height / rows))
        across = attrs.sample_ratio if attrs.sample_ratio > 0 else int(np.ceil(width / columns))
        for i, j in np.ndindex(rows, columns):
            read = [
                _read(
                    images[int(roi[0])],
                    top + (i + (a + 0.5) / down) * height / rows,
                    left + (j + (b + 0.5) / across) * width / columns,
                    np.max if attrs.mode == "max_of_corners" else np.sum,
                )
                for a in range(down)
                for b in range(across)
            ]
            if read:
                made[number, :, i, j] = np.mean(read, axis=0) if attrs.mode == "avg" else np.max(read, axis=0)
    return converted_array(made.astype(data.dtype), "NCHW", attrs.layout)


def _roi_align_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    layout = "NHWC" if attrs.layout == "NHWC" else "NCHW"
    compute = topi.vision.roi_align_nhwc if layout == "NHWC" else topi.vision.roi_align_nchw
    data = converted(inputs[0], attrs.layout, layout)
    made = compute(
        data,
        inputs[1],
        attrs.pooled_size,
        attrs.spatial_scale,
        attrs.mode,
        attrs.sample_ratio,
        attrs.aligned,
    )
    return [converted(made, layout, attrs.layout)]


ROI_ALIGN = define(
    "vision.roi_align",
    arguments=("data", "rois"),
    attrs=ROIAlignAttrs,
    relation=roi_relation,
    compute=_roi_align_compute,
    reference=_roi_align_reference,
    layout=_roi_layouts,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=5,
    description="Regions of an image, read between pixels and pooled.",
)


def roi_align(
    data: RelayExpr,
    rois: RelayExpr,
    pooled_size: Any,
    spatial_scale: float,
    sample_ratio: int = -1,
    layout: str = "NCHW",
    mode: str = "avg",
    aligned: bool = False,
) -> Call:
    """Regions (item, left, top, right, bottom) of images, pooled to ``pooled_size`` by "avg" or "max" of places read
    between pixels; ``sample_ratio`` squared an element, or as many as it has pixels. ``aligned`` regions have the
    centre of the first pixel at 0.5, and may be smaller than a pixel. "max_of_corners" takes the largest of the four
    weighted pixels around each place, as ONNX does."""
    attrs = ROIAlignAttrs(
        per_axis(pooled_size, 2, "pooled_size"), float(spatial_scale), sample_ratio, layout, mode, aligned
    )
    return Call(ROI_ALIGN, (data, rois), attrs)


def _round(value: Any) -> int:
    """Rounded to the nearest, a half away from zero."""
    return int(np.sign(value) * np.floor(abs(value) + 0.5))


def _roi_pool_reference(attrs: Any, data: Any, rois: Any) -> Any:
    images = converted_array(data, attrs.layout, "NCHW")
    rows, columns = per_axis(attrs.pooled_size, 2, "pooled_size")
    height, width = images.shape[2:]
    made = np.zeros((len(rois), images.shape[1], rows, columns), data.dtype)
    for number, roi in enumerate(rois):
        if roi[0] < 0:
            continue
        left, top, right, bottom = (
            _round(np.float32(side) * np.float32(attrs.spatial_scale)) for side in roi[1:]
        )
        across, down = max(right - left + 1, 1), max(bottom - top + 1, 1)
        for i, j in np.ndindex(rows, columns):
            y = [min(max(top + bound, 0), height) for bound in (i * down // rows, -(-(i + 1) * down // rows))]
            x = [
                min(max(left + bound, 0), width)
                for bound in (j * across // columns, -(-(j + 1) * across // columns))
            ]
            window = images[int(roi[0]), :, y[0] : y[1], x[0] : x[1]]
            if window.size:
                made[number, :, i, j] = window.max(axis=(1, 2))
    return converted_array(made, "NCHW", attrs.layout)


def _roi_pool_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data = converted(inputs[0], attrs.layout, "NCHW")
    made = topi.vision.roi_pool_nchw(data, inputs[1], attrs.pooled_size, attrs.spatial_scale)
    return [converted(made, "NCHW", attrs.layout)]


ROI_POOL = define(
    "vision.roi_pool",
    arguments=("data", "rois"),
    attrs=ROIPoolAttrs,
    relation=roi_relation,
    compute=_roi_pool_compute,
    reference=_roi_pool_reference,
    layout=_roi_layouts,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=5,
    description="Regions of an image, cut into bins of which each gives its largest pixel.",
)


def roi_pool(
    data: RelayExpr, rois: RelayExpr, pooled_size: Any, spatial_scale: float, layout: str = "NCHW"
) -> Call:
    """Regions (item, left, top, right, bottom) of images, cut into bins of which each gives its largest pixel."""
    attrs = ROIPoolAttrs(per_axis(pooled_size, 2, "pooled_size"), float(spatial_scale), layout)
    return Call(ROI_POOL, (data, rois), attrs)


def _convert(
    attrs: Any, inputs: Sequence[RelayExpr], tinfos: Sequence[Any], desired_layouts: Sequence[str]
) -> RelayExpr:
    layout = str(desired_layouts[0])
    op = ROI_ALIGN if isinstance(attrs, ROIAlignAttrs) else ROI_POOL
    return Call(op, inputs, attrs if layout == "default" else attrs.replace(layout=layout))


for _op in (ROI_ALIGN, ROI_POOL):
    register_convert_op_layout(_op.name, _convert)


# Proposals


def proposal_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    """(batch * boxes kept, 5)."""
    found = tensors(types, "the probabilities", "the predictions", "the images' sizes")
    if found is None:
        return None
    probabilities, predictions, sizes = found
    if [len(each.shape) for each in found] != [4, 4, 2]:
        raise RelationError("probabilities and predictions are NCHW, the images' sizes (batch, 3)")
    anchors = len(attrs.scales) * len(attrs.ratios)
    same(dims(probabilities)[1], 2 * anchors, "the probabilities, two an anchor")
    same(dims(predictions)[1], 4 * anchors, "the predictions, four an anchor")
    batch = same(dims(probabilities)[0], dims(sizes)[0], "the batches of probabilities and sizes")
    rows = combine(lambda items: items * attrs.rpn_post_nms_top_n, batch)
    return TensorType((rows, 5), probabilities.dtype)


def _moved(anchor: Any, move: Any, corners: bool) -> Any:
    """A box moved by a prediction."""
    x1, y1, x2, y2 = anchor
    if corners:
        return np.array([x1 + move[0], y1 + move[1], x2 + move[2], y2 + move[3]])
    width, height = x2 - x1 + 1, y2 - y1 + 1
    x, y = move[0] * width + x1 + (width - 1) / 2, move[1] * height + y1 + (height - 1) / 2
    across, along = (np.exp(move[2]) * width - 1) / 2, (np.exp(move[3]) * height - 1) / 2
    return np.array([x - across, y - along, x + across, y + along])


def _predicted(attrs: Any, scores: Any, moves: Any, info: Any) -> Any:
    """(x1, y1, x2, y2, score) of each anchor at each place of one item."""
    channels, height, width = scores.shape
    anchors = channels // 2
    boxes = np.zeros((height, width, anchors, 5))
    smallest = info[2] * attrs.rpn_min_size
    limits = np.array([info[1] - 1, info[0] - 1] * 2)
    for h, w, k in np.ndindex(height, width, anchors):
        ratio, scale = attrs.ratios[k // len(attrs.scales)], attrs.scales[k % len(attrs.scales)]
        anchor = np.array(generate_anchor(ratio, scale, attrs.feature_stride))
        shift = np.array([w * attrs.feature_stride, h * attrs.feature_stride] * 2)
        box = np.clip(_moved(anchor + shift, moves[k * 4 : k * 4 + 4, h, w], attrs.iou_loss), 0, limits)
        small = box[2] - box[0] + 1 < smallest or box[3] - box[1] + 1 < smallest
        beyond = h >= info[0] // attrs.feature_stride or w >= info[1] // attrs.feature_stride
        grow = smallest / 2 if small else 0
        boxes[h, w, k, :4] = box + np.array([-grow, -grow, grow, grow])
        boxes[h, w, k, 4] = -1 if small or beyond else scores[anchors + k, h, w]
    return boxes.reshape(-1, 5)


def _proposal_reference(attrs: Any, probabilities: Any, predictions: Any, sizes: Any) -> Any:
    made = []
    for n in range(len(probabilities)):
        boxes = _predicted(
            attrs, *(each[n].astype(np.float64) for each in (probabilities, predictions, sizes))
        )
        order = np.argsort(-boxes[:, 4].astype(probabilities.dtype), kind="stable")
        if attrs.rpn_pre_nms_top_n > 0:
            order = order[: attrs.rpn_pre_nms_top_n]
        kept: list[Any] = []
        for box in boxes[order]:
            if all(overlap(box[:4], other[:4], 1.0) <= attrs.threshold for other in kept):
                kept.append(box)
        # Where there are fewer than asked for, they are repeated from the first.
        made += [[n, *kept[place % len(kept)][:4]] for place in range(attrs.rpn_post_nms_top_n)]
    return np.array(made).astype(probabilities.dtype)


PROPOSAL = define(
    "vision.proposal",
    arguments=("cls_prob", "bbox_pred", "im_info"),
    attrs=ProposalAttrs,
    relation=proposal_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.vision.proposal(
            inputs[0],
            inputs[1],
            inputs[2],
            attrs.scales,
            attrs.ratios,
            attrs.feature_stride,
            attrs.threshold,
            attrs.rpn_pre_nms_top_n,
            attrs.rpn_post_nms_top_n,
            attrs.rpn_min_size,
            attrs.iou_loss,
        )
    ],
    reference=_proposal_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=5,
    description="The best of the boxes that are predicted at every place of a feature map.",
)


def proposal(
    cls_prob: RelayExpr,
    bbox_pred: RelayExpr,
    im_info: RelayExpr,
    scales: Any,
    ratios: Any,
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> Call:
    """The best boxes (item, x1, y1, x2, y2) of those predicted around each place, ``rpn_post_nms_top_n`` an item."""
    attrs = ProposalAttrs(
        tuple(float(scale) for scale in scales),
        tuple(float(ratio) for ratio in ratios),
        feature_stride,
        threshold,
        rpn_pre_nms_top_n,
        rpn_post_nms_top_n,
        rpn_min_size,
        bool(iou_loss),
    )
    return Call(PROPOSAL, (cls_prob, bbox_pred, im_info), attrs)
