"""Special functions, and losses."""

from __future__ import annotations

import math

import numpy as np

from tilewright import relay
from tilewright.relay.expr import const
from tilewright.relay.frontend.common import special
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.tensorflow.registry import converter


@converter("Lgamma")
def lgamma(node: GraphNode, data: Expr) -> Expr:
    """The logarithm of the magnitude of gamma."""
    return special.lgamma(data, node.dtype(data))


@converter("Digamma")
def digamma(node: GraphNode, data: Expr) -> Expr:
    """The derivative of the logarithm of gamma."""
    return special.digamma(data, node.dtype(data))


@converter("Erfinv")
def erfinv(node: GraphNode, data: Expr) -> Expr:
    """The inverse of the error function."""
    return special.erfinv(data, node.dtype(data))


@converter("Ndtri")
def ndtri(node: GraphNode, data: Expr) -> Expr:
    """The quantiles of the normal distribution."""
    centred = relay.subtract(relay.multiply(node.constant(2, data), data), node.constant(1, data))
    return relay.multiply(special.erfinv(centred, node.dtype(data)), node.constant(math.sqrt(2), data))


@converter("SoftmaxCrossEntropyWithLogits")
def softmax_cross_entropy(node: GraphNode, logits: Expr, labels: Expr) -> list[Expr]:
    """The loss of each row, and its gradient."""
    likely = relay.nn.log_softmax(logits, axis=-1)
    loss = relay.negative(relay.sum(relay.multiply(likely, labels), axis=[-1]))
    return [loss, relay.subtract(relay.nn.softmax(logits, axis=-1), labels)]


@converter("SparseSoftmaxCrossEntropyWithLogits")
def sparse_softmax_cross_entropy(node: GraphNode, logits: Expr, labels: Expr) -> list[Expr]:
    """The loss of each row, whose class is given by its number, and its gradient."""
    dtype = node.dtype(logits)
    classes = node.static_shape(logits)[1]
    truth = relay.one_hot(labels, const(1, dtype), const(0, dtype), classes, -1, dtype)
    return softmax_cross_entropy(node, logits, truth)


@converter("Cross")
def cross(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """The cross products of vectors of three elements."""

    def turned(data: Expr, order: list[int]) -> Expr:
        return relay.take(data, node.constants(order), axis=node.rank(data) - 1)

    ahead, back = [1, 2, 0], [2, 0, 1]
    return relay.subtract(
        relay.multiply(turned(left, ahead), turned(right, back)),
        relay.multiply(turned(left, back), turned(right, ahead)),
    )


@converter("CumulativeLogsumexp")
def cumulative_logsumexp(node: GraphNode, data: Expr, axis: Expr) -> Expr:
    """The logarithms of running sums of exponentials."""
    if node.attr("exclusive", False):
        raise node.fail("exclusive=True is not supported")
    along = node.from_front(int(node.number(axis, "the axis")), node.rank(data))
    count = node.static_shape(data)[along]
    # Each sum has a greatest element of its own: with that of all, small ones would vanish.
    summed = np.tri(count, dtype="bool")
    summed = summed.T if node.attr("reverse", False) else summed
    shape = [1] * (node.rank(data) + 1)
    shape[along], shape[along + 1] = count, count
    terms = relay.where(
        const(summed.reshape(shape)), relay.expand_dims(data, along), node.constant(-np.inf, data)
    )
    highest = relay.max(terms, axis=[along + 1])
    powers = relay.exp(relay.subtract(terms, relay.expand_dims(highest, along + 1)))
    return relay.add(relay.log(relay.sum(powers, axis=[along + 1])), highest)
