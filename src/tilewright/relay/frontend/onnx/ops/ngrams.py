"""Counting n-grams of integers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.registry import converter


@converter("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(node: Node, data: RelayExpr) -> RelayExpr:
    """How often each n-gram of a pool occurs in a row, as a number, as a weight where there is one, or as the product
    of both. Between the elements of an n-gram as many others may lie as ``max_skip_count`` says, always the same."""
    if node.attr("pool_strings", None):
        raise node.fail("n-grams of strings are not supported")
    mode = str(node.attr("mode"))
    if mode not in ("TF", "IDF", "TFIDF"):
        raise node.fail(f"the mode is TF, IDF or TFIDF, not {mode!r}")
    shape = node.static_shape(data)
    rows = relay.reshape(data, (1, -1)) if len(shape) == 1 else data
    counts = [_counted(node, rows, shape[-1], pool) for pool in _pools(node)]
    total = relay.concatenate(counts, 1) if len(counts) > 1 else counts[0]
    weights = node.attr("weights", None)
    if mode == "IDF":
        total = relay.minimum(total, const(1.0, "float32"))
    if mode != "TF" and weights:
        total = relay.multiply(total, const(np.asarray(weights, "float32")))
    # The place in the result of each n-gram of the pool.
    places = np.asarray(node.attr("ngram_indexes"))
    matrix = np.zeros((int(places.max()) + 1, len(places)), "float32")
    matrix[places, np.arange(len(places))] = 1.0
    made = relay.nn.dense(total, const(matrix))
    return relay.squeeze(made, [0]) if len(shape) == 1 else made


def _pools(node: Node) -> Iterator[np.ndarray]:
    """The n-grams of each length, a row each: those that are too short or too long too, since they have places."""
    begins = [int(one) for one in node.attr("ngram_counts")]
    pool = np.asarray(node.attr("pool_int64s"), "int64")
    for length, (begin, end) in enumerate(pairwise([*begins, len(pool)]), 1):
        if (end - begin) % length:
            raise node.fail(f"{end - begin} numbers are not n-grams of {length}")
        if end > begin:
            yield pool[begin:end].reshape(-1, length)


def _counted(node: Node, rows: RelayExpr, extent: int, pool: np.ndarray) -> RelayExpr:
    """How often each n-gram of a pool occurs in each row."""
    count, length = pool.shape
    shortest, longest = int(node.attr("min_gram_length")), int(node.attr("max_gram_length"))
    wanted = const(pool.astype(node.dtype(rows)))
    total: RelayExpr | None = None
    if shortest <= length <= longest:
        for skip in range(int(node.attr("max_skip_count")) + 1 if length > 1 else 1):
            starts = extent - (length - 1) * (skip + 1)
            if starts < 1:
                break
            grams = relay.stack(
                [
                    relay.strided_slice(rows, [place * (skip + 1)], [place * (skip + 1) + starts], axes=[1])
                    for place in range(length)
                ],
                2,
            )
            same = relay.all(relay.equal(relay.expand_dims(grams, 2), wanted), axis=3)
            found = relay.sum(relay.cast(same, "float32"), axis=1)
            total = found if total is None else relay.add(total, found)
    if total is None:
        return relay.zeros((node.static_shape(rows)[0], count), "float32")
    return total
