"""Linear models and support vector machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.casting import converted
from tilewright.relay.frontend.onnx.ops.classes import chosen_label, class_labels, labels_at, transformed
from tilewright.relay.frontend.onnx.registry import ML_DOMAIN, converter


def _rows(node: Node, data: RelayExpr) -> RelayExpr:
    """The data as rows of float32."""
    rows = relay.expand_dims(data, 0) if node.rank(data) == 1 else data
    return converted(node, rows, "float32")


def _array(node: Node, name: str, shape: Sequence[int]) -> np.ndarray[Any, Any]:
    found = np.asarray(node.attr(name, None) or (), dtype="float32")
    try:
        return found.reshape(tuple(shape))
    except ValueError as error:
        raise node.fail(f"{name} has {found.size} values, which are not {tuple(shape)}") from error


def _affine(node: Node, rows: RelayExpr, outputs: int) -> RelayExpr:
    """``rows @ coefficients + intercepts``; one row of coefficients for each output."""
    made: RelayExpr = relay.nn.dense(rows, const(_array(node, "coefficients", (outputs, -1))))
    intercepts = node.attr("intercepts", None)
    if not intercepts:
        return made
    return relay.add(made, const(np.asarray(intercepts, dtype="float32")))


@converter("LinearRegressor", domain=ML_DOMAIN)
def linear_regressor(node: Node, data: RelayExpr) -> RelayExpr:
    """A linear function of the features."""
    made = _affine(node, _rows(node, data), int(node.attr("targets", 1)))
    return transformed(node, made, str(node.attr("post_transform", "NONE")))


@converter("LinearClassifier", domain=ML_DOMAIN)
def linear_classifier(node: Node, data: RelayExpr) -> Sequence[RelayExpr]:
    """The label with the highest score, and the scores."""
    labels = class_labels(node, "classlabels_ints")
    kind = str(node.attr("post_transform", "NONE"))
    rows = _rows(node, data)
    features = node.static_shape(rows)[1]
    outputs = len(node.attr("coefficients")) // max(features, 1)
    scores = _affine(node, rows, outputs)
    if outputs == 1 and len(labels) <= 2:
        positive = relay.reshape(relay.greater(scores, node.constant(0, scores)), (-1,))
        if len(labels) == 2:
            return chosen_label(node, positive, labels[1], labels[0]), _both_classes(node, scores, kind)
        return chosen_label(node, positive, labels[0] if labels else 1, 0), transformed(node, scores, kind)
    return labels_at(labels, relay.argmax(scores, axis=1)), transformed(node, scores, kind)


def _both_classes(node: Node, scores: RelayExpr, kind: str) -> RelayExpr:
    """The scores of two classes from that of the second; ONNX leaves it open, and this is what ONNX Runtime does."""
    if kind == "PROBIT":
        raise node.fail("PROBIT of one score for two classes is not supported")
    if kind == "LOGISTIC":
        return relay.sigmoid(relay.concatenate([relay.negative(scores), scores], axis=1))
    return relay.concatenate([relay.subtract(node.constant(1, scores), scores), scores], axis=1)


# Support vector machines


def _kernels(node: Node, rows: RelayExpr, vectors: np.ndarray[Any, Any]) -> RelayExpr:
    """The kernel of each sample and each support vector."""
    kind = str(node.attr("kernel_type", "LINEAR"))
    gamma, offset, degree = (list(node.attr("kernel_params", None) or ()) + [0.0] * 3)[:3]
    products: RelayExpr = relay.nn.dense(rows, const(vectors))
    if kind == "LINEAR":
        return products
    if kind == "RBF":
        ours = relay.sum(relay.multiply(rows, rows), axis=1, keepdims=True)
        theirs = const((vectors * vectors).sum(axis=1))
        twice = relay.multiply(const(2.0, "float32"), products)
        distance = relay.maximum(relay.subtract(relay.add(ours, theirs), twice), const(0.0, "float32"))
        return relay.exp(relay.multiply(const(-float(gamma), "float32"), distance))
    line = relay.add(
        relay.multiply(products, const(float(gamma), "float32")), const(float(offset), "float32")
    )
    if kind == "SIGMOID":
        return relay.tanh(line)
    if kind == "POLY":
        made = line
        if float(degree).is_integer() and 1 <= degree <= 16:
            for _ in range(int(degree) - 1):
                made = relay.multiply(made, line)
            return made
        return relay.power(line, const(float(degree), "float32"))
    raise node.fail(f"kernel {kind!r} is not known")


@converter("SVMRegressor", domain=ML_DOMAIN)
def svm_regressor(node: Node, data: RelayExpr) -> RelayExpr:
    """A weighted sum of kernels; with ``one_class`` its sign."""
    rows = _rows(node, data)
    count = int(node.attr("n_supports", 0))
    if count:
        kernels = _kernels(node, rows, _array(node, "support_vectors", (count, -1)))
        made: RelayExpr = relay.nn.dense(kernels, const(_array(node, "coefficients", (1, count))))
    else:
        made = relay.nn.dense(rows, const(_array(node, "coefficients", (1, -1))))
    made = relay.add(made, const(np.asarray(node.attr("rho")[:1], dtype="float32")))
    if node.attr("one_class", 0):
        positive = relay.greater(made, const(0.0, "float32"))
        made = relay.where(positive, const(1.0, "float32"), const(-1.0, "float32"))
    return transformed(node, made, str(node.attr("post_transform", "NONE")))


@converter("SVMClassifier", domain=ML_DOMAIN)
def svm_classifier(node: Node, data: RelayExpr) -> Sequence[RelayExpr]:
    """One against one: each pair of classes has a score, and votes for one of the two."""
    labels = class_labels(node, "classlabels_ints")
    kind = str(node.attr("post_transform", "NONE"))
    rows = _rows(node, data)
    sizes = [int(size) for size in node.attr("vectors_per_class", None) or ()]
    classes = max(len(labels), 1)
    if not sum(sizes):
        made: RelayExpr = relay.nn.dense(rows, const(_array(node, "coefficients", (classes, -1))))
        linear = relay.add(made, const(float(node.attr("rho")[0]), "float32"))
        return labels_at(labels, relay.argmax(linear, axis=1)), transformed(node, linear, kind)
    if len(sizes) != classes:
        raise node.fail(f"vectors_per_class has {len(sizes)} values for {classes} classes")
    scores, votes = _one_against_one(node, rows, sizes)
    places = relay.argmax(votes, axis=1)
    if node.attr("prob_a", None):
        return _with_probabilities(node, scores, places, labels, kind)
    if classes == 2:
        pair = relay.concatenate([relay.negative(scores), scores], axis=1)
        return labels_at(labels, places), transformed(node, pair, kind)
    return labels_at(labels, places), transformed(node, scores, kind)


def _one_against_one(node: Node, rows: RelayExpr, sizes: list[int]) -> tuple[RelayExpr, RelayExpr]:
    """The scores of the pairs of classes, and the votes for the classes."""
    count, classes = sum(sizes), len(sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    kernels = _kernels(node, rows, _array(node, "support_vectors", (count, -1)))
    coefficients = _array(node, "coefficients", (classes - 1, count))
    rho = _array(node, "rho", (classes * (classes - 1) // 2,))
    pairs = [(one, other) for one in range(classes) for other in range(one + 1, classes)]
    weights = np.zeros((len(pairs), count), dtype="float32")
    for row, (one, other) in enumerate(pairs):
        first, second = slice(starts[one], starts[one + 1]), slice(starts[other], starts[other + 1])
        weights[row, first] = coefficients[other - 1, first]
        weights[row, second] = coefficients[one, second]
    scores = relay.add(relay.nn.dense(kernels, const(weights)), const(rho))
    wins = np.zeros((classes, len(pairs)), dtype="float32")
    losses = np.zeros((classes, len(pairs)), dtype="float32")
    for column, (one, other) in enumerate(pairs):
        wins[one, column] = losses[other, column] = 1
    positive = relay.cast(relay.greater(scores, const(0.0, "float32")), "float32")
    negative = relay.subtract(const(1.0, "float32"), positive)
    votes = relay.add(relay.nn.dense(positive, const(wins)), relay.nn.dense(negative, const(losses)))
    return scores, votes


def _with_probabilities(
    node: Node, scores: RelayExpr, places: RelayExpr, labels: list[int], kind: str
) -> Sequence[RelayExpr]:
    """The probabilities of two classes, from Platt's sigmoid of the score."""
    if len(labels) != 2:
        raise node.fail("probabilities of more than two classes are not supported")
    slope, offset = float(node.attr("prob_a")[0]), float(node.attr("prob_b")[0])
    line = relay.add(relay.multiply(scores, const(slope, "float32")), const(offset, "float32"))
    first = relay.clip(relay.sigmoid(relay.negative(line)), 1e-7, 1 - 1e-7)
    pair = relay.concatenate([first, relay.subtract(const(1.0, "float32"), first)], axis=1)
    return labels_at(labels, relay.argmax(pair, axis=1)), transformed(node, pair, kind)
