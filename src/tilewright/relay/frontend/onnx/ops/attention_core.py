"""Scaled dot-product attention: heads, masks, scores and weighted sums.

Queries, keys and values are (batch, heads, length, size); several query heads may share one head of keys and values.
Masks are biases that are added to the scores, minus infinity where a key is not visible. Batch and lengths may be
unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.partial_shapes import (
    Extent,
    arange,
    as_matrices,
    combined,
    extent,
    from_matrices,
    scalar,
)

Change = Callable[[Expr], Expr]


def split_heads(node: Node, data: Expr, heads: int) -> Expr:
    """(batch, length, heads * size) as (batch, heads, length, size)."""
    width = node.shape(data)[-1]
    if heads < 1 or (width is not None and width % heads):
        raise node.fail(f"{width} features cannot be divided into {heads} heads")
    size = -1 if width is None else width // heads
    return relay.transpose(relay.reshape(data, (0, 0, heads, size)), (0, 2, 1, 3))


def merge_heads(data: Expr) -> Expr:
    """(batch, heads, length, size) as (batch, length, heads * size)."""
    return relay.reshape(relay.transpose(data, (0, 2, 1, 3)), (0, 0, -3))


def _product(node: Node, a: Expr, b: Expr, transpose_b: bool) -> Expr:
    """The matrix products of (batch, heads); heads of ``a`` that share one of ``b`` are rows of one matrix."""
    heads, shared = node.shape(a)[1], node.shape(b)[1]
    if heads is None or shared is None or heads % shared:
        raise node.fail(f"{heads} heads of queries cannot share {shared} heads of keys")
    times = heads // shared
    rows = a if times == 1 else relay.reshape(a, (0, shared, -1, node.shape(a)[3] or 0))
    if times > 1 and node.shape(a)[3] is None:
        rows = relay.reshape(relay.reshape(a, (0, -4, shared, times, -2)), (0, 0, -3, 0))
    made: Expr = relay.nn.batch_matmul(
        as_matrices(node, rows), as_matrices(node, b), transpose_a=False, transpose_b=transpose_b
    )
    made = from_matrices(node, made, b)
    if times == 1:
        return made
    return relay.reshape(relay.reshape(made, (0, 0, -4, times, -1, 0)), (0, -3, 0, 0))


@dataclass
class Attention:
    """The outputs of attention: the result, and its scores at each stage."""

    result: Expr
    raw: Expr
    capped: Expr
    biased: Expr
    weights: Expr


def attend(
    node: Node,
    queries: Expr,
    keys: Expr,
    values: Expr,
    scale: float | None = None,
    bias: Expr | None = None,
    softcap: float = 0.0,
    precision: str | None = None,
    hides_rows: bool = False,
    change_scores: Change | None = None,
    change_weights: Change | None = None,
) -> Attention:
    """Values weighted by the softmax of how much each query is like each key.

    Where ``bias`` may hide all keys of a row (``hides_rows``), such a row gives zero. ``precision`` is the element type
    in which the softmax is computed.
    """
    dtype = node.dtype(queries)
    if scale is None:
        size = node.shape(queries)[3]
        if size is None:
            raise node.fail("the size of a head is not known")
        scale = float(1 / np.sqrt(size))
    if dtype in ("float32", "float64"):
        raw = _product(node, queries * const(scale, dtype), keys, True)
    else:
        # Half of the scale on either side keeps low-precision floats in range.
        root = const(float(np.sqrt(scale)), dtype)
        raw = _product(node, queries * root, keys * root, True)
    capped = raw
    if softcap > 0:
        cap = const(softcap, dtype)
        capped = relay.tanh(raw / cap) * cap
    biased = capped if bias is None else capped + bias
    logits = biased if precision in (None, dtype) else relay.cast(biased, str(precision))
    if change_scores is not None:
        logits = change_scores(logits)
    weights: Expr = relay.nn.softmax(logits, axis=-1)
    shown: Change = _as_they_are
    if bias is not None and hides_rows:
        shown = _without_hidden(node, bias)
    if change_weights is not None:
        weights = change_weights(shown(weights))
        result = _product(node, weights, relay.cast(values, node.dtype(weights)), False)
        return Attention(relay.cast(result, dtype), raw, capped, biased, weights)
    if node.dtype(weights) != dtype:
        weights = relay.cast(weights, dtype)
    # Rows of the result are hidden as those of the weights are; products and softmax stay next to each other.
    result = shown(_product(node, weights, values, False))
    return Attention(result, raw, capped, biased, shown(weights))


def _as_they_are(data: Expr) -> Expr:
    return data


def _without_hidden(node: Node, bias: Expr) -> Change:
    """Zero instead of nothing divided by nothing, where a row sees no key."""
    lowest = const(float("-inf"), node.dtype(bias))
    hidden = relay.equal(relay.max(bias, axis=-1, keepdims=True), lowest)
    return lambda data: relay.where(hidden, const(0, node.dtype(data)), data)


# Masks


def hidden_unless(allowed: Expr, dtype: str) -> Expr:
    """A bias of zero where keys are seen, and minus infinity elsewhere."""
    return relay.where(allowed, const(0.0, dtype), const(float("-inf"), dtype))


def positions(node: Node, data: Expr, offset: Extent | Expr) -> Expr:
    """The position of each query as a column, from an offset: a number, or (batch, 1, 1, 1)."""
    rows = relay.expand_dims(arange(extent(node, data, 2)), axis=1)
    return rows + scalar(offset)


def window_allowed(node: Node, rows: Expr, length: Extent, left: int | None, right: int | None) -> Expr:
    """Which keys are at most ``left`` before a query and ``right`` after it; None is any number."""
    columns = relay.expand_dims(arange(length), axis=0)
    tests = []
    if right is not None:
        tests.append(relay.less_equal(columns, rows + const(right, "int64")))
    if left is not None:
        tests.append(relay.greater_equal(columns, rows - const(left, "int64")))
    return tests[0] if len(tests) == 1 else relay.logical_and(*tests)


def before(node: Node, length: Extent, counts: Expr) -> Expr:
    """Which keys of each item (batch, 1, 1, keys) are among the first ``counts``."""
    columns = arange(length)
    return relay.less(columns, relay.reshape(relay.cast(counts, "int64"), (-1, 1, 1, 1)))


def added(first: Expr | None, second: Expr | None) -> Expr | None:
    """The sum of two biases, either of which may be missing."""
    if first is None or second is None:
        return second if first is None else first
    return first + second


def padded_mask(node: Node, mask: Expr, length: Extent) -> Expr:
    """A mask with the keys that it leaves out at its end hidden."""
    given = extent(node, mask, node.rank(mask) - 1)
    if isinstance(given, int) and isinstance(length, int) and given >= length:
        return mask
    if given == 1:
        return mask
    dtype = node.dtype(mask)
    value = const(False, "bool") if dtype == "bool" else const(float("-inf"), dtype)
    missing = combined(length, given, lambda a, b: a - b)
    lead = [(0, 0)] * (node.rank(mask) - 1)
    if isinstance(missing, int):
        return relay.nn.pad(mask, [*lead, (0, missing)], value)
    widths: list[Any] = [const(np.zeros((len(lead), 2), "int64"))] if lead else []
    last = relay.stack([const(0, "int64"), missing], axis=0)
    return relay.nn.pad(mask, relay.concatenate([*widths, relay.expand_dims(last, 0)], axis=0), value)
