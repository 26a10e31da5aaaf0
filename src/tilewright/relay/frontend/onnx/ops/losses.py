"""Losses."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.partial_shapes import extent, shape_vector
from tilewright.relay.frontend.onnx.registry import converter

_NEVER = -(2**31)
"""A class that no target has: nothing is ignored."""


def _negative_log_likelihood(node: Node, logs: Expr, target: Expr, weight: Expr | None) -> Expr:
    dtype = node.dtype(logs)
    if weight is None:
        weight = relay.ones(shape_vector([extent(node, logs, 1)]), dtype)
    ignored = int(node.attr("ignore_index", _NEVER))
    reduction = node.attr("reduction", "mean")
    if reduction not in ("none", "sum", "mean"):
        raise node.fail(f"the reduction {reduction!r} is not known")
    return relay.nn.nll_loss(logs, target, weight, reduction, ignored)


@converter("NegativeLogLikelihoodLoss", since=12)
def negative_log_likelihood(node: Node, data: Expr, target: Expr, weight: Expr | None = None) -> Expr:
    """Minus the logarithm of the probability of the target's class."""
    return _negative_log_likelihood(node, data, target, weight)


@converter("SoftmaxCrossEntropyLoss", since=12)
def softmax_cross_entropy(
    node: Node, scores: Expr, labels: Expr, weight: Expr | None = None
) -> Sequence[Expr]:
    """The negative log likelihood of the softmax of scores, and the logarithms themselves."""
    logs = relay.nn.log_softmax(scores, axis=1)
    return [_negative_log_likelihood(node, logs, labels, weight), logs][: max(node.num_outputs, 1)]
