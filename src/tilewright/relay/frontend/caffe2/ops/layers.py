"""Convolutions, pooling, products, normalisation, other sizes of images."""

from __future__ import annotations

from math import prod
from typing import Any

from tilewright import relay
from tilewright.relay.frontend.caffe2.node import Caffe2Node
from tilewright.relay.frontend.caffe2.registry import OPERATORS
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.tensorflow.ops.matrices import products


@OPERATORS.register("Conv")
def conv(node: Caffe2Node, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """A convolution of images."""
    node.require_order()
    outputs, _, *kernel = node.static_shape(weight, "the weight")
    if len(kernel) != 2:
        raise node.fail("only convolutions of images are supported")
    made = relay.nn.conv2d(
        data,
        weight,
        strides=node.pair("stride", "strides", 1),
        padding=node.padding(),
        dilation=node.pair("dilation", "dilations", 1),
        groups=node.integer("group", 1),
        channels=outputs,
        kernel_size=kernel,
    )
    return made if bias is None else relay.nn.bias_add(made, bias, axis=1)


@OPERATORS.register("ConvTranspose")
def conv_transpose(node: Caffe2Node, data: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """A transposed convolution of images; ``adj`` is added after it."""
    node.require_order()
    groups = node.integer("group", 1)
    _, each, *kernel = node.static_shape(weight, "the weight")
    made = relay.nn.conv2d_transpose(
        data,
        weight,
        strides=node.pair("stride", "strides", 1),
        padding=node.padding(),
        groups=groups,
        channels=each * groups,
        kernel_size=kernel,
        output_padding=node.pair("adj", "adjs", 0),
    )
    return made if bias is None else relay.nn.bias_add(made, bias, axis=1)


@OPERATORS.register("MaxPool", "AveragePool")
def pooling(node: Caffe2Node, data: Expr) -> Expr:
    """The largest or the mean of each window, or of the whole image."""
    node.require_order()
    largest = node.op_type == "MaxPool"
    if node.integer("global_pooling", 0):
        return (relay.max if largest else relay.mean)(data, axis=[2, 3], keepdims=True)
    if node.pair("dilation", "dilations", 1) != [1, 1]:
        raise node.fail("windows with holes are not supported")
    window: dict[str, Any] = {
        "pool_size": node.pair("kernel", "kernels", 1),
        "strides": node.pair("stride", "strides", 1),
        "padding": node.padding(),
    }
    if largest:
        return relay.nn.max_pool2d(data, **window)
    return relay.nn.avg_pool2d(data, **window, count_include_pad=bool(node.integer("count_include_pad", 0)))


@OPERATORS.register("FC")
def fully_connected(node: Caffe2Node, data: Expr, weight: Expr, bias: Expr) -> Expr:
    """A product of everything from an axis on with a weight (outputs, inputs)."""
    shape = node.static_shape(data)
    axis = node.chosen_axis("axis", 1, data)
    wide = node.static_shape(weight, "the weight")
    split = node.integer("axis_w", 1)
    outputs, inputs = prod(wide[:split]), prod(wide[split:])
    if wide != (outputs, inputs):
        weight = node.reshaped_weight(weight, (outputs, inputs))
    made = relay.nn.dense(relay.reshape(data, (-1, inputs)), weight, units=outputs)
    return relay.reshape(relay.nn.bias_add(made, bias, axis=1), (*shape[:axis], outputs))


@OPERATORS.register("MatMul")
def matmul(node: Caffe2Node, left: Expr, right: Expr) -> Expr:
    """The product of two matrices."""
    return products(node, left, right, bool(node.integer("trans_a", 0)), bool(node.integer("trans_b", 0)))


@OPERATORS.register("BatchMatMul")
def batch_matmul(node: Caffe2Node, left: Expr, right: Expr) -> Expr:
    """Products of pairs of matrices."""
    return products(node, left, right, bool(node.integer("trans_a", 0)), bool(node.integer("trans_b", 0)))


@OPERATORS.register("SpatialBN")
def spatial_bn(node: Caffe2Node, data: Expr, scale: Expr, bias: Expr, mean: Expr, variance: Expr) -> Expr:
    """Channels normalised by the statistics of training."""
    node.require_order()
    return relay.nn.batch_norm(data, scale, bias, mean, variance, axis=1, epsilon=node.real("epsilon", 1e-5))[
        0
    ]


@OPERATORS.register("InstanceNorm")
def instance_norm(node: Caffe2Node, data: Expr, scale: Expr, bias: Expr) -> Expr:
    """Each channel of each image normalised."""
    node.require_order()
    return relay.nn.instance_norm(data, scale, bias, axis=1, epsilon=node.real("epsilon", 1e-5))


@OPERATORS.register("LRN")
def lrn(node: Caffe2Node, data: Expr) -> Expr:
    """Elements divided by a power of the squares around them in other channels."""
    node.require_order()
    return relay.nn.lrn(
        data,
        size=node.integer("size", 1),
        axis=1,
        bias=node.real("bias", 1.0),
        alpha=node.real("alpha", 0.0),
        beta=node.real("beta", 0.0),
    )


@OPERATORS.register("ResizeNearest")
def resize_nearest(node: Caffe2Node, data: Expr) -> Expr:
    """Images in another size, by the nearest pixels."""
    node.require_order()
    sizes = node.static_shape(data)[2:]
    factors = [node.real("height_scale", 1.0), node.real("width_scale", 1.0)]
    target = [int(size * factor) for size, factor in zip(sizes, factors, strict=True)]
    if any(
        abs(size * factor - whole) > 1e-4 for size, factor, whole in zip(sizes, factors, target, strict=True)
    ):
        raise node.fail(f"the factors {factors} give sizes that are not whole")
    return relay.image.resize2d(
        data,
        target,
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    )


@OPERATORS.register("UpsampleNearest")
def upsample_nearest(node: Caffe2Node, data: Expr) -> Expr:
    """Images enlarged by repeating pixels."""
    factor = node.integer("scale", 2)
    return relay.nn.upsampling(data, scale_h=factor, scale_w=factor)
