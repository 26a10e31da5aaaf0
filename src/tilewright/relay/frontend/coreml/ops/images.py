"""Convolutions, pooling, normalisation and other sizes of images."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final

import numpy as np

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.coreml.layers.arrays import normalized
from tilewright.relay.frontend.coreml.layers.images import SAMPLING, same_padding
from tilewright.relay.frontend.coreml.operation import OperationNode
from tilewright.relay.frontend.coreml.registry import OPERATIONS

_CONVOLUTIONS: Final[dict[int, Any]] = {1: relay.nn.conv1d, 2: relay.nn.conv2d, 3: relay.nn.conv3d}
_TRANSPOSED: Final[dict[int, Any]] = {
    1: (relay.nn.conv1d_transpose, "OIW"),
    2: (relay.nn.conv2d_transpose, "IOHW"),
    3: (relay.nn.conv3d_transpose, "OIDHW"),
}
_POOLS: Final[dict[tuple[str, int], Callable[..., Expr]]] = {
    ("max", 1): relay.nn.max_pool1d,
    ("max", 2): relay.nn.max_pool2d,
    ("max", 3): relay.nn.max_pool3d,
    ("avg", 1): relay.nn.avg_pool1d,
    ("avg", 2): relay.nn.avg_pool2d,
    ("avg", 3): relay.nn.avg_pool3d,
}


def _padding(
    node: OperationNode, data: Expr, kernel: list[int], strides: list[int], dilations: list[int]
) -> list[int]:
    """Padding before all axes of space, then after them."""
    rank = len(kernel)
    kind = node.text("pad_type", "valid")
    if kind == "valid":
        return [0] * (2 * rank)
    if kind in ("same", "same_lower"):
        return same_padding(node, node.shape(data)[2:], kernel, strides, dilations, kind == "same_lower")
    if kind != "custom":
        raise node.fail(f"the padding {kind!r} is not known")
    flat = node.integers("pad", [0] * (2 * rank))
    return flat[::2] + flat[1::2]


@OPERATIONS.register("conv")
def conv(node: OperationNode) -> Expr:
    """A convolution of one, two or three axes of space."""
    data, weight = node.tensor(), node.tensor("weight")
    outputs, _, *kernel = node.static_shape(weight, "the weight")
    rank = len(kernel)
    strides, dilations = node.integers("strides", [1] * rank), node.integers("dilations", [1] * rank)
    made: Expr = _CONVOLUTIONS[rank](
        data,
        weight,
        strides=strides,
        padding=_padding(node, data, kernel, strides, dilations),
        dilation=dilations,
        groups=node.integer("groups", 1),
        channels=outputs,
        kernel_size=kernel,
    )
    bias = node.optional("bias")
    return made if bias is None else relay.nn.bias_add(made, bias, axis=1)


@OPERATIONS.register("conv_transpose")
def conv_transpose(node: OperationNode) -> Expr:
    """A transposed convolution; a size of the result wins over padding."""
    data, weight = node.tensor(), node.tensor("weight")
    _, each, *kernel = node.static_shape(weight, "the weight")
    rank = len(kernel)
    groups = node.integer("groups", 1)
    strides, dilations = node.integers("strides", [1] * rank), node.integers("dilations", [1] * rank)
    sizes = node.static_shape(data)[2:]
    full = [
        (size - 1) * stride + dilation * (taps - 1) + 1
        for size, stride, dilation, taps in zip(sizes, strides, dilations, kernel, strict=True)
    ]
    kind, more = node.text("pad_type", "valid"), [0] * rank
    wanted = node.integers("output_shape", [])[-rank:]
    if kind in ("same", "same_lower") and not wanted:
        wanted = [size * stride for size, stride in zip(sizes, strides, strict=True)]
    if kind == "custom":
        flat = node.integers("pad", [0] * (2 * rank))
        padding = flat[::2] + flat[1::2]
        if wanted:
            more = [
                want - (have - before - after)
                for want, have, before, after in zip(
                    wanted, full, padding[:rank], padding[rank:], strict=True
                )
            ]
    elif wanted:
        extra = [have - want for have, want in zip(full, wanted, strict=True)]
        heavy = kind == "same_lower"
        first = [max((one + 1) // 2 if heavy else one // 2, 0) for one in extra]
        padding = first + [max(one - before, 0) for one, before in zip(extra, first, strict=True)]
        more = [max(-one, 0) for one in extra]
    else:
        padding = [0] * (2 * rank)
    if min(more) < 0:
        raise node.fail("the size of the result is smaller than what the padding leaves")
    function, layout = _TRANSPOSED[rank]
    made: Expr = function(
        data,
        weight,
        strides=strides,
        padding=padding,
        dilation=dilations,
        groups=groups,
        channels=each * groups,
        kernel_size=kernel,
        kernel_layout=layout,
        output_padding=more,
    )
    bias = node.optional("bias")
    return made if bias is None else relay.nn.bias_add(made, bias, axis=1)


def _pooled(node: OperationNode, data: Expr, kind: str, counted: bool) -> Expr:
    kernel = node.integers("kernel_sizes")
    rank = len(kernel)
    strides = node.integers("strides", [1] * rank)
    window: dict[str, Any] = {
        "pool_size": kernel,
        "strides": strides,
        "padding": _padding(node, data, kernel, strides, [1] * rank),
        "ceil_mode": node.flag("ceil_mode"),
    }
    if kind == "max":
        return _POOLS[kind, rank](data, **window)
    return _POOLS[kind, rank](data, **window, count_include_pad=counted)


@OPERATIONS.register("max_pool")
def max_pool(node: OperationNode) -> Expr:
    """The largest of each window."""
    return _pooled(node, node.tensor(), "max", True)


@OPERATIONS.register("avg_pool")
def avg_pool(node: OperationNode) -> Expr:
    """The mean of each window."""
    return _pooled(node, node.tensor(), "avg", not node.flag("exclude_padding_from_average"))


@OPERATIONS.register("l2_pool")
def l2_pool(node: OperationNode) -> Expr:
    """The root of the sum of squares of each window."""
    data = node.tensor()
    means = _pooled(node, relay.multiply(data, data), "avg", True)
    return relay.sqrt(relay.multiply(means, node.constant(prod(node.integers("kernel_sizes")), data)))


@OPERATIONS.register("batch_norm")
def batch_norm(node: OperationNode) -> Expr:
    """Channels normalised by the statistics of training."""
    mean = node.tensor("mean")
    count = node.static_shape(mean, "the mean")[0]
    gamma, beta = node.optional("gamma"), node.optional("beta")
    return relay.nn.batch_norm(
        node.tensor(),
        node.constant(np.ones(count), mean) if gamma is None else gamma,
        node.constant(np.zeros(count), mean) if beta is None else beta,
        mean,
        node.tensor("variance"),
        axis=1,
        epsilon=node.real("epsilon", 1e-5),
    )[0]


@OPERATIONS.register("instance_norm")
def instance_norm(node: OperationNode) -> Expr:
    """Each channel of each image normalised."""
    data = node.tensor()
    count = node.static_shape(data)[1]
    gamma, beta = node.optional("gamma"), node.optional("beta")
    return relay.nn.instance_norm(
        data,
        node.constant(np.ones(count), data) if gamma is None else gamma,
        node.constant(np.zeros(count), data) if beta is None else beta,
        axis=1,
        epsilon=node.real("epsilon", 1e-5),
    )


@OPERATIONS.register("layer_norm")
def layer_norm(node: OperationNode) -> Expr:
    """Elements normalised over axes, which have to be the last ones."""
    data = node.tensor()
    rank = node.rank(data)
    axes = sorted(axis % rank for axis in node.integers("axes", range(rank)))
    if axes != list(range(rank - len(axes), rank)):
        raise node.fail(f"the axes {axes} are not the last ones")
    epsilon = node.real("epsilon", 1e-5)
    return normalized(node, data, len(axes), node.optional("gamma"), node.optional("beta"), epsilon)


@OPERATIONS.register("l2_norm")
def l2_norm(node: OperationNode) -> Expr:
    """Images divided by their length."""
    data = node.tensor()
    rank = node.rank(data)
    squares = relay.sum(relay.multiply(data, data), axis=list(range(max(rank - 3, 0), rank)), keepdims=True)
    length = relay.sqrt(relay.add(squares, node.constant(node.real("epsilon", 1e-6), data)))
    return relay.divide(data, length)


@OPERATIONS.register("local_response_norm")
def local_response_norm(node: OperationNode) -> Expr:
    """Elements divided by a power of the squares around them in other channels."""
    return relay.nn.lrn(
        node.tensor(),
        size=node.integer("size", 1),
        axis=1,
        bias=node.real("k", 1.0),
        alpha=node.real("alpha", 1e-4),
        beta=node.real("beta", 0.75),
    )


@OPERATIONS.register("pixel_shuffle")
def pixel_shuffle(node: OperationNode) -> Expr:
    """Channels as pixels."""
    return relay.nn.depth_to_space(node.tensor(), node.integer("upscale_factor", 1), mode="CRD")


@OPERATIONS.register("depth_to_space")
def depth_to_space(node: OperationNode) -> Expr:
    """Channels as pixels."""
    return relay.nn.depth_to_space(node.tensor(), node.integer("block_size", 1), mode="DCR")


@OPERATIONS.register("space_to_depth")
def space_to_depth(node: OperationNode) -> Expr:
    """Pixels as channels."""
    return relay.nn.space_to_depth(node.tensor(), node.integer("block_size", 1))


def _resized(data: Expr, sizes: list[int], method: str, where: str) -> Expr:
    rounding = "floor" if method == "nearest_neighbor" else ""
    return relay.image.resize2d(
        data, sizes, method=method, coordinate_transformation_mode=where, rounding_method=rounding
    )


def _scaled(node: OperationNode, data: Expr) -> list[int]:
    sizes = node.static_shape(data)[-2:]
    factors = [node.real("scale_factor_height", 1.0), node.real("scale_factor_width", 1.0)]
    made = [size * factor for size, factor in zip(sizes, factors, strict=True)]
    if any(abs(one - round(one)) > 1e-3 for one in made):
        raise node.fail(f"the factors {factors} give sizes that are not whole: {made}")
    return [round(one) for one in made]


@OPERATIONS.register("upsample_nearest_neighbor")
def upsample_nearest(node: OperationNode) -> Expr:
    """Images enlarged by repeating pixels."""
    data = node.tensor()
    return _resized(data, _scaled(node, data), "nearest_neighbor", "asymmetric")


@OPERATIONS.register("upsample_bilinear")
def upsample_bilinear(node: OperationNode) -> Expr:
    """Images enlarged by linear interpolation."""
    data = node.tensor()
    if node.has("half_pixel_centers") and node.flag("half_pixel_centers") is node.flag("align_corners", True):
        where = "align_corners" if node.flag("align_corners", True) else "asymmetric"
    else:
        where = "align_corners" if node.flag("align_corners", True) else "half_pixel"
    return _resized(data, _scaled(node, data), "linear", where)


@OPERATIONS.register("resize_nearest_neighbor")
def resize_nearest(node: OperationNode) -> Expr:
    """Images in another size, by the nearest pixels."""
    sizes = [node.integer("target_size_height", 1), node.integer("target_size_width", 1)]
    return _resized(node.tensor(), sizes, "nearest_neighbor", "asymmetric")


@OPERATIONS.register("resize_bilinear")
def resize_bilinear(node: OperationNode) -> Expr:
    """Images in another size, by linear interpolation."""
    mode = node.text("sampling_mode", "DEFAULT")
    ways = {
        "DEFAULT": "align_corners",
        "STRICT_ALIGN_CORNERS": SAMPLING["STRICT_ALIGN_ENDPOINTS_MODE"],
        "ALIGN_CORNERS": "align_corners",
        "UNALIGN_CORNERS": "half_pixel",
    }
    if mode not in ways:
        raise node.fail(f"the sampling {mode!r} is not supported")
    sizes = [node.integer("target_size_height", 1), node.integer("target_size_width", 1)]
    return _resized(node.tensor(), sizes, "linear", ways[mode])


@OPERATIONS.register("crop")
def crop(node: OperationNode) -> Expr:
    """Images without a border."""
    data = node.tensor()
    rows, columns = node.static_shape(data)[-2:]
    (top, bottom), (left, right) = node.integers("crop_height"), node.integers("crop_width")
    rank = node.rank(data)
    return relay.strided_slice(data, [top, left], [rows - bottom, columns - right], axes=[rank - 2, rank - 1])
