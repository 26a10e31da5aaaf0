"""GridSample, AffineGrid and Col2Im."""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.partial_shapes import check_constants
from tilewright.relay.frontend.onnx.ops.windows import attribute_list, operators
from tilewright.relay.frontend.onnx.registry import MICROSOFT_DOMAIN, converter

_METHODS = {
    "linear": "bilinear",
    "bilinear": "bilinear",
    "nearest": "nearest",
    "cubic": "bicubic",
    "bicubic": "bicubic",
}
_TRANSPOSED = operators("conv", "_transpose")


@converter("GridSample", since=16)
@converter("GridSample", domain=MICROSOFT_DOMAIN)
def grid_sample(node: Node, data: Expr, grid: Expr) -> Expr:
    """An image or a volume read at the places of a grid, whose coordinates come last."""
    rank = node.rank(data)
    if rank not in (4, 5):
        raise node.fail(f"data of {rank} dimensions are not supported: images and volumes are")
    mode = str(node.attr("mode", "linear"))
    if mode not in _METHODS:
        raise node.fail(f"the mode {mode!r} is not known")
    first = (0, rank - 1, *range(1, rank - 1))
    return relay.image.grid_sample(
        data,
        relay.transpose(grid, first),
        method=_METHODS[mode],
        layout="NCHW" if rank == 4 else "NCDHW",
        padding_mode=str(node.attr("padding_mode", "zeros")),
        align_corners=bool(node.attr("align_corners", 0)),
    )


@converter("AffineGrid", since=20)
def affine_grid(node: Node, maps: Expr, size: Expr) -> Expr:
    """The places to which affine maps send the elements of an image or a volume."""
    sizes = node.ints(size, "the size")[2:]
    if any(count < 1 for count in sizes):
        raise node.fail(f"images of the size {sizes} are empty")
    check_constants(node, len(sizes) + 1, *sizes)
    aligned = bool(node.attr("align_corners", 0))
    lines = [
        np.linspace(-1, 1, count) if aligned else (2 * np.arange(count) + 1) / count - 1 for count in sizes
    ]
    # The innermost axis is the first coordinate; the last one is 1, for the shift.
    places = [*reversed(np.meshgrid(*lines, indexing="ij")), np.ones(sizes)]
    points = np.stack([place.reshape(-1) for place in places], axis=-1)[None]
    made = relay.nn.batch_matmul(node.constant(points, maps), maps, transpose_b=True)
    return relay.reshape(made, (-1, *sizes, len(sizes)))


@converter("Col2Im", since=18)
def col2im(node: Node, columns: Expr, image_shape: Expr, block_shape: Expr) -> Expr:
    """Windows (batch, channels * taps, places) added up at their positions: a transposed convolution by single taps."""
    image, block = node.ints(image_shape, "the image's shape"), node.ints(block_shape, "the block's shape")
    rank = len(image)
    if rank not in _TRANSPOSED or len(block) != rank:
        raise node.fail(f"images of {rank} spatial axes and blocks of {len(block)} are not supported")
    strides = attribute_list(node, "strides", rank, 1)
    dilations = attribute_list(node, "dilations", rank, 1)
    pads = [int(item) for item in node.attr("pads", None) or [0] * (2 * rank)]
    taps = prod(block)
    check_constants(node, taps, taps)
    counts, more = [], []
    for axis in range(rank):
        room = image[axis] + pads[axis] + pads[axis + rank] - (block[axis] - 1) * dilations[axis] - 1
        counts.append(room // strides[axis] + 1)
        more.append(room % strides[axis])
    channels = node.shape(columns)[1]
    if channels is None or channels % taps:
        raise node.fail(f"{channels} channels are not a multiple of the block's {taps} elements")
    kernel = np.eye(taps).reshape(taps, 1, *block)
    made = _TRANSPOSED[rank](
        relay.reshape(columns, (-1, taps, *counts)),
        node.constant(kernel, columns),
        strides=strides,
        padding=tuple(pads),
        dilation=dilations,
        channels=1,
        kernel_size=tuple(block),
        output_padding=tuple(more),
    )
    return relay.reshape(made, (-1, channels // taps, *image))
