"""Colours of images."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.tensorflow.registry import converter


def _parts(node: GraphNode, image: Expr) -> list[Expr]:
    return list(relay.split(image, 3, axis=node.rank(image) - 1))


@converter("AdjustContrastv2")
def adjust_contrast(node: GraphNode, image: Expr, factor: Expr) -> Expr:
    """The distance of each pixel from its channel's mean by a factor."""
    rank = node.rank(image)
    means = relay.mean(image, axis=[rank - 3, rank - 2], keepdims=True)
    return relay.add(
        relay.multiply(relay.subtract(image, means), relay.cast(factor, node.dtype(image))), means
    )


@converter("RGBToHSV")
def to_hsv(node: GraphNode, image: Expr) -> Expr:
    """Hue, saturation and value of red, green and blue, all from 0 to 1."""
    red, green, blue = _parts(node, image)
    zero, one = node.constant(0, image), node.constant(1, image)
    value = relay.maximum(relay.maximum(red, green), blue)
    spread = relay.subtract(value, relay.minimum(relay.minimum(red, green), blue))
    is_grey = relay.equal(spread, zero)
    unit = relay.divide(node.constant(1 / 6, image), relay.where(is_grey, one, spread))
    from_blue = relay.add(relay.multiply(unit, relay.subtract(red, green)), node.constant(4 / 6, image))
    from_green = relay.add(relay.multiply(unit, relay.subtract(blue, red)), node.constant(2 / 6, image))
    from_red = relay.multiply(unit, relay.subtract(green, blue))
    hue = relay.where(
        relay.equal(red, value), from_red, relay.where(relay.equal(green, value), from_green, from_blue)
    )
    hue = relay.where(is_grey, zero, hue)
    hue = relay.where(relay.less(hue, zero), relay.add(hue, one), hue)
    is_bright = relay.greater(value, zero)
    saturation = relay.where(is_bright, relay.divide(spread, relay.where(is_bright, value, one)), zero)
    return relay.concatenate([hue, saturation, value], axis=node.rank(image) - 1)


@converter("HSVToRGB")
def to_rgb(node: GraphNode, image: Expr) -> Expr:
    """Red, green and blue of hue, saturation and value."""
    hue, saturation, value = _parts(node, image)
    turns = relay.multiply(hue, node.constant(6, image))
    one = node.constant(1, image)

    def distance(place: float) -> Expr:
        return relay.abs(relay.subtract(turns, node.constant(place, image)))

    two = node.constant(2, image)
    shares = [
        relay.clip(share, 0, 1)
        for share in (
            relay.subtract(distance(3), one), relay.subtract(two, distance(2)), relay.subtract(two, distance(4))
        )
    ]  # fmt: skip
    colors = [
        relay.multiply(relay.add(relay.subtract(one, saturation), relay.multiply(saturation, share)), value)
        for share in shares
    ]
    return relay.concatenate(colors, axis=node.rank(image) - 1)


@converter("AdjustHue")
def adjust_hue(node: GraphNode, image: Expr, delta: Expr) -> Expr:
    """The hue turned."""
    hue, saturation, value = _parts(node, to_hsv(node, image))
    turned = relay.add(hue, relay.cast(delta, node.dtype(image)))
    turned = relay.subtract(turned, relay.floor(turned))
    return to_rgb(node, relay.concatenate([turned, saturation, value], axis=node.rank(image) - 1))


@converter("AdjustSaturation")
def adjust_saturation(node: GraphNode, image: Expr, factor: Expr) -> Expr:
    """The saturation by a factor, at most one."""
    hue, saturation, value = _parts(node, to_hsv(node, image))
    more = relay.clip(relay.multiply(saturation, relay.cast(factor, node.dtype(image))), 0, 1)
    return to_rgb(node, relay.concatenate([hue, more, value], axis=node.rank(image) - 1))
