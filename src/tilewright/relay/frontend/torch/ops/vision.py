"""torchvision's operators of detection."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.sizes import as_scalar, size_of
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.views import part
from tilewright.relay.frontend.torch.registry import converter


@converter("torchvision::nms")
def nms(node: TorchNode, dets: Expr, scores: Expr, iou_threshold: Any) -> Expr:
    """The boxes of the best scores that overlap no better box, best first.

    Relay's operator skips boxes whose score is not positive, and takes an overlap at the threshold for one above it: it
    gets boxes in order, ranks for scores, and the next number after the threshold.
    """
    order = relay.argsort(scores, 0, False, "int64")
    count = relay.cast(as_scalar(size_of(node, dets, 0)), "int32")
    zero, one = const(0, "int32"), const(1, "int32")
    places = relay.arange(zero, count, one, "int32")
    dtype = node.dtype(dets)
    ranks = relay.cast(relay.subtract(count, places), dtype)
    boxes = relay.concatenate([relay.expand_dims(ranks, 1), relay.take(dets, order, axis=0)], 1)
    threshold = np.float32(node.number_of(iou_threshold, "iou_threshold"))
    found: Any = relay.vision.non_max_suppression(
        relay.expand_dims(boxes, 0),
        relay.reshape(count, (1,)),
        relay.expand_dims(places, 0),
        max_output_size=-1,
        iou_threshold=float(np.nextafter(threshold, np.float32(np.inf))),
        force_suppress=True,
        coord_start=1,
        score_index=0,
        id_index=-1,
        return_indices=True,
    )
    kept = relay.squeeze(found[0], axis=[0])
    number = relay.cast(relay.reshape(found[1], (1,)), "int64")
    chosen = relay.strided_slice(kept, const(np.zeros(1, "int64")), number, const(np.ones(1, "int64")))
    return relay.take(order, relay.cast(chosen, "int64"), axis=0)


@converter("torchvision::roi_align")
def roi_align(
    node: TorchNode,
    input: Expr,
    rois: Expr,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool = False,
) -> Expr:
    """Regions read between pixels and pooled to one size."""
    return relay.vision.roi_align(
        input,
        rois,
        (pooled_height, pooled_width),
        float(spatial_scale),
        sampling_ratio if sampling_ratio > 0 else -1,
        aligned=bool(aligned),
    )


@converter("torchvision::roi_pool")
def roi_pool(
    node: TorchNode, input: Expr, rois: Expr, spatial_scale: float, pooled_height: int, pooled_width: int
) -> list[Any]:
    """The greatest element of each part of each region."""
    made = relay.vision.roi_pool(input, rois, (pooled_height, pooled_width), float(spatial_scale))
    return [made, None]


@converter("torchvision::deform_conv2d")
def deform_conv2d(
    node: TorchNode, input: Expr, weight: Expr, offset: Expr, mask: Expr, bias: Expr, stride_h: int, stride_w: int,
    pad_h: int, pad_w: int, dilation_h: int, dilation_w: int, groups: int, offset_groups: int, use_mask: bool,
) -> Expr:  # fmt: skip
    """A convolution whose taps are moved by offsets and, where there is a mask, weighted by it; zeros are outside."""
    outputs, inputs, *kernel = node.static_shape(weight, "the weight")
    taps = prod(kernel)
    batch, channels, height, width = node.static_shape(input)
    rows, columns = node.static_shape(offset, "the offset")[2:]
    moved = relay.reshape(offset, (batch * offset_groups, taps, 2, rows, columns))
    settings = ((stride_h, pad_h, dilation_h, height), (stride_w, pad_w, dilation_w, width))
    grid = []
    for axis, (stride, before, dilation, size) in enumerate(settings):
        tap = np.arange(taps) // kernel[1] if axis == 0 else np.arange(taps) % kernel[1]
        place = np.arange((rows, columns)[axis]) * stride - before
        home = tap[:, None] * dilation + place[None, :]
        home = home[:, :, None] if axis == 0 else home[:, None, :]
        home = np.broadcast_to(home, (taps, rows, columns)).astype("float64")
        pixel = relay.add(
            relay.squeeze(part(node, moved, 2, axis, axis + 1), axis=[2]), node.constant(home, input)
        )
        # Pixel centres to the coordinates of grid_sample without aligned corners.
        scaled = relay.add(
            relay.multiply(pixel, node.constant(2.0 / size, input)), node.constant(1.0 / size - 1.0, input)
        )
        grid.append(relay.reshape(scaled, (batch * offset_groups, taps * rows, columns)))
    images = relay.reshape(input, (batch * offset_groups, channels // offset_groups, height, width))
    read: Expr = relay.image.grid_sample(
        images, relay.stack([grid[1], grid[0]], 1), padding_mode="zeros", align_corners=False
    )
    if use_mask:
        read = relay.multiply(read, relay.reshape(mask, (batch * offset_groups, 1, taps * rows, columns)))
    made: Expr = relay.nn.conv2d(
        relay.reshape(read, (batch, channels, taps, rows * columns)),
        relay.reshape(weight, (outputs, inputs, taps, 1)),
        groups=groups,
        channels=outputs,
        kernel_size=(taps, 1),
    )
    made = relay.reshape(made, (batch, outputs, rows, columns))
    return relay.nn.bias_add(made, bias, axis=1)
