"""From the scores of classes to the outputs of classifiers: transformed scores, and labels."""

from __future__ import annotations

import math

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.support.errors import ModelError


def transformed(node: Node, scores: RelayExpr, kind: str) -> RelayExpr:
    """Scores through a ``post_transform``; one row of scores for each sample."""
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return relay.sigmoid(scores)
    if kind == "SOFTMAX":
        return relay.nn.softmax(scores, axis=1)
    if kind == "SOFTMAX_ZERO":
        return _softmax_zero(node, scores)
    if kind == "PROBIT":
        return _probit(node, scores)
    raise node.fail(f"post_transform {kind!r} is not known")


def _softmax_zero(node: Node, scores: RelayExpr) -> RelayExpr:
    """A softmax in which scores of zero stay zero."""
    most = relay.max(scores, axis=1, keepdims=True)
    counted = relay.greater(relay.abs(scores), node.constant(1e-7, scores))
    exponentials = relay.exp(relay.subtract(scores, most))
    parts = relay.where(counted, exponentials, relay.multiply(scores, relay.exp(relay.negative(most))))
    total = relay.sum(parts, axis=1, keepdims=True)
    none = relay.equal(total, node.constant(0, scores))
    return relay.where(none, node.constant(0.5, scores), relay.divide(parts, total))


def _probit(node: Node, scores: RelayExpr) -> RelayExpr:
    """The quantile of the normal distribution, by Winitzki's approximation of the inverse error function."""
    curve = 0.147
    one, two = node.constant(1, scores), node.constant(2, scores)
    place = relay.subtract(relay.multiply(two, scores), one)
    log = relay.log(relay.subtract(one, relay.multiply(place, place)))
    half = relay.add(node.constant(2 / (math.pi * curve), scores), relay.divide(log, two))
    root = relay.sqrt(
        relay.subtract(relay.multiply(half, half), relay.multiply(node.constant(1 / curve, scores), log))
    )
    size = relay.sqrt(relay.subtract(root, half))
    return relay.multiply(node.constant(math.sqrt(2), scores), relay.multiply(relay.sign(place), size))


def class_labels(node: Node, name: str) -> list[int]:
    """The labels of the classes, which must be integers if anything uses them."""
    strings = node.attr("classlabels_strings", None)
    if strings:
        if node.wants(0):
            raise ModelError(f"{node.where}: labels that are strings are not supported")
        return list(range(len(strings)))
    return [int(label) for label in node.attr(name, None) or ()]


def labels_at(labels: list[int], places: RelayExpr) -> RelayExpr:
    """The labels of classes, as int64."""
    return relay.take(const(np.asarray(labels, dtype="int64")), places)


def chosen_label(node: Node, positive: RelayExpr, yes: int, no: int) -> RelayExpr:
    """One of two labels for each sample."""
    return relay.where(positive, node.constant(yes, "int64"), node.constant(no, "int64"))
