"""Images in other sizes, and sampled at other places."""

from __future__ import annotations

from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.registry import converter

_METHODS: Final = {
    "nearest": "nearest_neighbor",
    "linear": "linear",
    "bilinear": "linear",
    "trilinear": "linear",
    "bicubic": "cubic",
}
_SIZES: Final = {1: ("out_w",), 2: ("out_h", "out_w"), 3: ("out_d", "out_h", "out_w")}
_RESIZE: Final[dict[int, Any]] = {1: relay.image.resize1d, 2: relay.image.resize2d, 3: relay.image.resize3d}


def _target(
    node: PaddleNode, data: Expr, given: Expr | None, parts: list[Expr], factor: Expr | None, space: list[int]
) -> list[int]:
    """The sizes that the images get."""
    rank = len(space)
    if parts or given is not None:
        return node.known("the size", given, parts)
    factors = node.required_value(factor, "the scale").reshape(-1).tolist() if factor is not None else []
    if not factors:
        stated = node.attr("scale", [])
        factors = [float(one) for one in stated] if isinstance(stated, (list, tuple)) else [float(stated)]
    factors = [one for one in factors if one > 0]
    if not factors:
        return [node.integer(name) for name in _SIZES[rank]]
    factors = factors * rank if len(factors) == 1 else factors
    sizes = node.static_shape(data)
    made = [sizes[axis] * one for axis, one in zip(space, factors, strict=True)]
    if any(abs(one - round(one)) > 1e-4 for one in made) and not node.flag("align_corners"):
        raise node.fail(f"the scale {factors} gives sizes that are not whole: {made}")
    return [int(one + 1e-4) for one in made]


@converter(
    *(
        f"{name}_interp{version}"
        for name in ("nearest", "linear", "bilinear", "trilinear", "bicubic")
        for version in ("", "_v2")
    ),
    reads="X OutSize SizeTensor* Scale",
)
def interpolate(
    node: PaddleNode, data: Expr, given: Expr | None, parts: list[Expr], factor: Expr | None
) -> Expr:
    """Images in another size."""
    rank = node.rank(data) - 2
    method = node.text("interp_method", node.op_type.split("_", maxsplit=1)[0])
    if rank not in _RESIZE or method not in _METHODS:
        raise node.fail(f"the method {method!r} for {rank + 2} dimensions is not supported")
    last = node.text("data_layout", node.text("data_format", "NCHW")).endswith("C")
    space = list(range(1, rank + 1)) if last else list(range(2, rank + 2))
    target = _target(node, data, given, parts, factor, space)
    letters = "DHW"[-rank:]
    align, mode = node.flag("align_corners", True), node.integer("align_mode", 1)
    if align:
        where = "align_corners"
    elif method == "nearest" or (mode == 1 and method != "bicubic"):
        where = "asymmetric"
    else:
        where = "half_pixel"
    rounding = ("round" if align else "floor") if method == "nearest" else ""
    made: Expr = _RESIZE[rank](
        data,
        target,
        layout=f"N{letters}C" if last else f"NC{letters}",
        method=_METHODS[method],
        coordinate_transformation_mode=where,
        rounding_method=rounding,
        cubic_alpha=-0.75,
    )
    return made


@converter("grid_sampler", reads="X Grid", writes="Output")
def grid_sampler(node: PaddleNode, data: Expr, grid: Expr) -> Expr:
    """Images sampled at given places."""
    if node.rank(data) != 4:
        raise node.fail("only images are supported")
    padding = node.text("padding_mode", "zeros")
    if padding not in ("zeros", "border"):
        raise node.fail(f"the padding mode {padding!r} is not supported")
    return relay.image.grid_sample(
        data,
        relay.transpose(grid, (0, 3, 1, 2)),
        method=node.text("mode", "bilinear"),
        padding_mode=padding,
        align_corners=node.flag("align_corners", True),
    )


@converter("affine_grid", reads="Theta OutputShape", writes="Output")
def affine_grid(node: PaddleNode, theta: Expr, given: Expr | None) -> Expr:
    """The places that an affine map gives to the pixels of images."""
    sizes = node.known("output_shape", given)
    if len(sizes) != 4:
        raise node.fail("only images are supported")
    if not node.flag("align_corners", True):
        raise node.fail("align_corners has to be true")
    return relay.transpose(relay.image.affine_grid(theta, sizes[2:]), (0, 2, 3, 1))


@converter("unfold", writes="Y")
def unfold(node: PaddleNode, data: Expr) -> Expr:
    """The windows of images as columns."""
    batch, channels, *space = node.static_shape(data)
    kernel, strides = node.integers("kernel_sizes"), node.integers("strides")
    dilations, paddings = node.integers("dilations"), node.integers("paddings")
    top, left, bottom, right = paddings if len(paddings) == 4 else paddings * 2
    padded = relay.nn.pad(data, ((0, 0), (0, 0), (top, bottom), (left, right)))
    sizes = [space[0] + top + bottom, space[1] + left + right]
    counts = [
        (size - dilation * (taps - 1) - 1) // stride + 1
        for size, dilation, taps, stride in zip(sizes, dilations, kernel, strides, strict=True)
    ]
    parts = []
    for row in range(kernel[0]):
        for column in range(kernel[1]):
            begin = [row * dilations[0], column * dilations[1]]
            end = [
                first + (count - 1) * stride + 1
                for first, count, stride in zip(begin, counts, strides, strict=True)
            ]
            parts.append(relay.strided_slice(padded, begin, end, strides, axes=[2, 3]))
    stacked = relay.stack(parts, axis=2)
    return relay.reshape(stacked, (batch, channels * kernel[0] * kernel[1], counts[0] * counts[1]))


@converter("roi_align", reads="X ROIs RoisNum")
def roi_align(node: PaddleNode, data: Expr, regions: Expr, counts: Expr | None) -> Expr:
    """Means of interpolated points of regions of one image."""
    if node.shape(data)[0] != 1:
        raise node.fail("regions of more than one image are not supported")
    rows = node.static_shape(regions)[0]
    numbered = relay.concatenate([node.constant([[0.0]] * rows, regions), regions], 1)
    return relay.vision.roi_align(
        data,
        numbered,
        (node.integer("pooled_height", 1), node.integer("pooled_width", 1)),
        node.real("spatial_scale", 1.0),
        sample_ratio=node.integer("sampling_ratio", -1),
        aligned=node.flag("aligned", True),
    )
