"""Pooling, cropping, and changes of size."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.darknet.node import LayerNode
from tilewright.relay.frontend.darknet.registry import converter


@converter("maxpool")
def maxpool(node: LayerNode, data: Expr) -> Expr:
    """The largest of each window. The border is stated for both sides together; what is odd of it comes after."""
    stride = node.integer("stride", 1)
    size = node.integer("size", stride)
    border = node.integer("padding", size - 1)
    before = border // 2
    after = border - before
    return relay.nn.max_pool2d(
        data,
        pool_size=(size, size),
        strides=(node.integer("stride_y", stride), node.integer("stride_x", stride)),
        padding=(before, before, after, after),
    )


@converter("avgpool")
def avgpool(node: LayerNode, data: Expr) -> Expr:
    """The mean of each channel."""
    return relay.nn.global_avg_pool2d(node.image(data))


@converter("crop")
def crop(node: LayerNode, data: Expr) -> Expr:
    """The middle of the image, its numbers from -1 to 1 unless ``noadjust``."""
    _, _, height, width = node.static_shape(node.image(data))
    rows, columns = node.integer("crop_height", 1), node.integer("crop_width", 1)
    if not (0 < rows <= height and 0 < columns <= width):
        raise node.fail(f"{rows} x {columns} cannot be cut out of {height} x {width}")
    top, left = (height - rows) // 2, (width - columns) // 2
    made = relay.strided_slice(data, [top, left], [top + rows, left + columns], [1, 1], axes=[2, 3])
    if node.integer("noadjust", 0):
        return made
    return relay.subtract(relay.multiply(made, node.constant(2, made)), node.constant(1, made))


@converter("upsample")
def upsample(node: LayerNode, data: Expr) -> Expr:
    """Pixels repeated, times a scale."""
    stride = node.integer("stride", 2)
    if stride < 1:
        raise node.fail(f"the stride {stride} is not supported")
    made = relay.nn.upsampling(data, scale_h=stride, scale_w=stride)
    scale = node.real("scale", 1.0)
    return made if scale == 1.0 else relay.multiply(made, node.constant(scale, made))


@converter("reorg")
def reorg(node: LayerNode, data: Expr) -> Expr:
    """Pixels gathered into channels."""
    return relay.vision.yolo_reorg(data, node.integer("stride", 1))
