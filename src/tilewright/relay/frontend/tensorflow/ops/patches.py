"""Windows of images and volumes, each as one vector."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.tensorflow.ops.windows import Window, window_of
from tilewright.relay.frontend.tensorflow.registry import converter


def _taps(node: GraphNode, data: Expr, window: Window) -> list[Expr]:
    """For each place inside a window, the elements that all windows have there."""
    sizes = node.static_shape(data)[1:-1]
    pads = [(0, 0), *zip(window.before, window.after, strict=True), (0, 0)]
    padded = relay.nn.pad(data, pads, node.constant(0, data)) if window.is_padded else data
    axes = list(range(1, len(sizes) + 1))
    counts = [
        (size + first + last - (taps - 1) * apart - 1) // step + 1
        for size, first, last, taps, apart, step in zip(
            sizes, window.before, window.after, window.kernel, window.dilations, window.strides, strict=True
        )
    ]
    found: list[Expr] = []
    for place in product(*map(range, window.kernel)):
        begins = [at * apart for at, apart in zip(place, window.dilations, strict=True)]
        ends = [
            begin + (count - 1) * step + 1
            for begin, count, step in zip(begins, counts, window.strides, strict=True)
        ]
        found.append(relay.strided_slice(padded, begins, ends, list(window.strides), axes=axes))
    return found


def _patches(node: GraphNode, data: Expr, layout: str, kernel: Sequence[int]) -> Expr:
    taps = _taps(node, data, window_of(node, data, layout, [int(one) for one in kernel[1:-1]]))
    return relay.concatenate(taps, axis=-1) if len(taps) > 1 else taps[0]


@converter("ExtractImagePatches")
def extract_image_patches(node: GraphNode, data: Expr) -> Expr:
    """The windows of an image: rows, columns and channels in this order."""
    return _patches(node, data, "NHWC", node.attr("ksizes"))


@converter("ExtractVolumePatches")
def extract_volume_patches(node: GraphNode, data: Expr) -> Expr:
    """The windows of a volume: planes, rows, columns and channels in this order."""
    return _patches(node, data, "NDHWC", node.attr("ksizes"))
