"""Layers that read the results of others than the one before."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.darknet.node import LayerNode
from tilewright.relay.frontend.darknet.ops.activation import activated
from tilewright.relay.frontend.darknet.registry import converter


@converter("route")
def route(node: LayerNode, data: Expr) -> Expr:
    """The channels of other layers one after another; with groups, one part of each layer's channels."""
    given = [node.earlier(number) for number in node.integers("layers")]
    if not given:
        raise node.fail("the option 'layers' is missing")
    groups, chosen = node.integer("groups", 1), node.integer("group_id", 0)
    if groups != 1:
        if groups < 1 or not 0 <= chosen < groups:
            raise node.fail(f"there is no group {chosen} of {groups}")
        sizes = [node.static_shape(one)[1] // groups for one in given]
        given = [
            relay.strided_slice(one, [chosen * size], [(chosen + 1) * size], [1], axes=[1])
            for one, size in zip(given, sizes, strict=True)
        ]
    return given[0] if len(given) == 1 else relay.concatenate(given, 1)


def _with_channels(node: LayerNode, data: Expr, channels: int) -> Expr:
    """The first channels, or zeros after them."""
    have = node.static_shape(data)[1]
    if have > channels:
        return relay.strided_slice(data, [0], [channels], [1], axes=[1])
    if have < channels:
        return relay.nn.pad(data, [(0, 0), (0, channels - have), (0, 0), (0, 0)], node.constant(0, data))
    return data


@converter("shortcut")
def shortcut(node: LayerNode, data: Expr) -> Expr:
    """The sum with other layers, of the channels that both have."""
    numbers = node.integers("from")
    if not numbers:
        raise node.fail("the option 'from' is missing")
    for number in numbers:
        other = node.earlier(number)
        mine, theirs = node.static_shape(data), node.static_shape(other)
        if mine[2:] != theirs[2:]:
            raise node.fail(f"sums of images of the sizes {mine[2:]} and {theirs[2:]} are not supported")
        scales = [node.real(name, 1.0) for name in ("alpha", "beta")]
        if scales != [1.0, 1.0]:
            if mine != theirs:
                raise node.fail("alpha and beta are not supported for different numbers of channels")
            data, other = (
                relay.multiply(one, node.constant(scale, one))
                for one, scale in zip((data, other), scales, strict=True)
            )
        data = relay.add(data, _with_channels(node, other, mine[1]))
    return activated(node, data, "linear")


@converter("scale_channels")
def scale_channels(node: LayerNode, data: Expr) -> Expr:
    """The channels of another layer times the numbers of this one."""
    return activated(node, relay.multiply(node.earlier(node.integer("from", -1)), node.image(data)), "linear")
