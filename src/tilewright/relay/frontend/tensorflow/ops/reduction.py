"""Reductions, positions of extremes, and running sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.running import running
from tilewright.relay.frontend.common.sizes import multiplied
from tilewright.relay.frontend.tensorflow.registry import converter

_REDUCTIONS: Final[dict[str, tuple[str, Callable[..., Any]]]] = {
    "Max": ("REDUCE_MAX", relay.max),
    "Min": ("REDUCE_MIN", relay.min),
    "Mean": ("MEAN", relay.mean),
    "Sum": ("SUM", relay.sum),
    "All": ("REDUCE_ALL", relay.all),
    "Any": ("REDUCE_ANY", relay.any),
}


def axes_of(node: GraphNode, data: Expr, axes: Expr) -> list[int]:
    """The axes of a reduction, counted from the front."""
    rank = node.rank(data)
    return sorted({node.from_front(axis, rank) for axis in node.ints(axes, "the axes")})


def reduced(node: GraphNode, function: Callable[..., Any], data: Expr, axes: Expr) -> Expr:
    """A reduction along axes; none at all leaves the data as they are."""
    found = axes_of(node, data, axes)
    return function(data, axis=found, keepdims=bool(node.attr("keep_dims", False))) if found else data


def _register(name: str, lite: str, function: Callable[..., Any]) -> None:
    @converter(name, lite)
    def convert(node: GraphNode, data: Expr, axes: Expr) -> Expr:
        return reduced(node, function, data, axes)


for _name, (_lite, _function) in _REDUCTIONS.items():
    _register(_name, _lite, _function)


@converter("Prod", "REDUCE_PROD")
def prod(node: GraphNode, data: Expr, axes: Expr) -> Expr:
    """The product along axes; of a shape, whose elements are followed, it is followed too."""
    elements = node.scope.vectors.get(data)
    if elements is not None and node.rank(data) == 1 and not node.attr("keep_dims", False):
        return node.of_elements([multiplied(elements)], node.dtype(data), scalar=True)
    return reduced(node, relay.prod, data, axes)


@converter("EuclideanNorm")
def euclidean_norm(node: GraphNode, data: Expr, axes: Expr) -> Expr:
    """The square root of the sum of squares."""
    return relay.sqrt(reduced(node, relay.sum, relay.multiply(data, data), axes))


@converter("ArgMax", "ARG_MAX")
def arg_max(node: GraphNode, data: Expr, axis: Expr) -> Expr:
    """Where the greatest elements are: the first of equal ones."""
    return _position(node, relay.argmax, data, axis)


@converter("ArgMin", "ARG_MIN")
def arg_min(node: GraphNode, data: Expr, axis: Expr) -> Expr:
    """Where the least elements are: the first of equal ones."""
    return _position(node, relay.argmin, data, axis)


def _position(node: GraphNode, function: Callable[..., Any], data: Expr, axis: Expr) -> Expr:
    found = function(data, axis=axes_of(node, data, axis), keepdims=False)
    return relay.cast(found, str(node.attr("output_type", "int64")))


@converter("Cumsum", "CUMSUM")
def cumsum(node: GraphNode, data: Expr, axis: Expr) -> Expr:
    """Running sums."""
    return _running(node, relay.cumsum, data, axis)


@converter("Cumprod")
def cumprod(node: GraphNode, data: Expr, axis: Expr) -> Expr:
    """Running products."""
    return _running(node, relay.cumprod, data, axis)


def _running(node: GraphNode, function: Callable[..., Any], data: Expr, axis: Expr) -> Expr:
    (along,) = axes_of(node, data, axis)
    exclusive, reverse = bool(node.attr("exclusive", False)), bool(node.attr("reverse", False))
    return running(function, data, along, exclusive=exclusive, reverse=reverse)
