"""Attention of the ONNX standard, and rotary position embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.attention_core import (
    Change,
    added,
    attend,
    before,
    hidden_unless,
    merge_heads,
    padded_mask,
    positions,
    split_heads,
    window_allowed,
)
from tilewright.relay.frontend.onnx.ops.partial_shapes import Extent, extent, part, scalar
from tilewright.relay.frontend.onnx.registry import converter
from tilewright.relay.frontend.onnx.tensors import dtype_name

PREVIEW_DOMAIN = "ai.onnx.preview"


@converter("Attention", since=23)
def attention(
    node: Node,
    queries: Expr,
    keys: Expr,
    values: Expr,
    mask: Expr | None = None,
    past_keys: Expr | None = None,
    past_values: Expr | None = None,
    lengths: Expr | None = None,
) -> Sequence[Expr]:
    """Attention over keys and values, and those of the past."""
    flat = node.rank(queries) == 3
    if flat:
        heads, shared = int(node.attr("q_num_heads")), int(node.attr("kv_num_heads"))
        queries = split_heads(node, queries, heads)
        keys, values = split_heads(node, keys, shared), split_heads(node, values, shared)
    offset: Extent = 0
    if past_keys is not None and past_values is not None:
        offset = extent(node, past_keys, 2)
        keys = relay.concatenate([past_keys, keys], axis=2)
        values = relay.concatenate([past_values, values], axis=2)
    bias, hides = _bias(node, queries, keys, mask, lengths, offset)
    precision = node.attr("softmax_precision", None)
    scale = node.attr("scale", None)
    made = attend(
        node,
        queries,
        keys,
        values,
        scale=None if scale is None else float(scale),
        bias=bias,
        softcap=float(node.attr("softcap", 0.0)),
        precision=None if precision is None else dtype_name(int(precision)),
        hides_rows=hides,
    )
    stages = (made.raw, made.capped, made.biased, made.weights)
    stage = int(node.attr("qk_matmul_output_mode", 0))
    if not 0 <= stage < len(stages):
        raise node.fail(f"qk_matmul_output_mode is 0 to 3, not {stage}")
    result = merge_heads(made.result) if flat else made.result
    return [result, keys, values, stages[stage]][: max(node.num_outputs, 1)]


def _bias(
    node: Node,
    queries: Expr,
    keys: Expr,
    mask: Expr | None,
    lengths: Expr | None,
    offset: Extent,
) -> tuple[Expr | None, bool]:
    """All that hides keys, and whether it may hide every key of a query."""
    dtype = node.dtype(queries)
    count = extent(node, keys, 2)
    bias: Expr | None = None
    if mask is not None:
        mask = padded_mask(node, mask, count)
        bias = hidden_unless(mask, dtype) if node.dtype(mask) == "bool" else mask
    start: Extent = offset
    if lengths is not None:
        held = relay.reshape(relay.cast(lengths, "int64"), (-1, 1, 1, 1))
        start = held - scalar(extent(node, queries, 2))
    left, right = int(node.attr("left_window_size", -1)), int(node.attr("right_window_size", -1))
    limits = (None if left < 0 else left, None if right < 0 else right)
    if node.attr("is_causal", 0):
        limits = (limits[0], 0)
    if limits != (None, None):
        allowed = window_allowed(node, positions(node, queries, start), count, *limits)
        bias = added(bias, hidden_unless(allowed, dtype))
    if lengths is not None:
        bias = added(bias, hidden_unless(before(node, count, lengths), dtype))
    plain_causal = mask is None and lengths is None and limits == (None, 0)
    return bias, bias is not None and not plain_causal


@converter("FlexAttention", domain=PREVIEW_DOMAIN)
def flex_attention(node: Node, queries: Expr, keys: Expr, values: Expr) -> Expr:
    """Attention whose scores and weights are modified by subgraphs."""
    dtype = node.dtype(queries)
    precision = node.attr("softmax_precision", None)
    wide = "float64" if dtype == "float64" else "float32"
    scale = node.attr("scale", None)
    made = attend(
        node,
        queries,
        keys,
        values,
        scale=None if scale is None else float(scale),
        precision=wide if precision is None else dtype_name(int(precision)),
        change_scores=_by_graph(node, node.attr("score_mod", None)),
        change_weights=_by_graph(node, node.attr("prob_mod", None)) or _as_they_are,
    )
    return made.result


def _as_they_are(weights: Expr) -> Expr:
    return weights


def _by_graph(node: Node, graph: Any) -> Change | None:
    if graph is None:
        return None

    def changed(scores: Expr) -> Expr:
        result: Expr = node.graph.convert_body(graph, [scores]).outputs[0]
        return relay.cast(result, node.dtype(scores))

    return changed


# Rotation


@converter("RotaryEmbedding", since=23)
def rotary_embedding(
    node: Node,
    data: Expr,
    cosines: Expr,
    sines: Expr,
    position_ids: Expr | None = None,
) -> Expr:
    """Pairs of features turned by angles that grow with the position."""
    flat = node.rank(data) == 3
    heads = split_heads(node, data, int(node.attr("num_heads", 0))) if flat else data
    if position_ids is not None:
        cosines = relay.take(cosines, position_ids, axis=0)
        sines = relay.take(sines, position_ids, axis=0)
    made = rotated(
        node,
        heads,
        relay.expand_dims(cosines, axis=1),
        relay.expand_dims(sines, axis=1),
        int(node.attr("rotary_embedding_dim", 0)),
        bool(node.attr("interleaved", 0)),
    )
    return merge_heads(made) if flat else made


def rotated(node: Node, data: Expr, cosines: Expr, sines: Expr, size: int, interleaved: bool) -> Expr:
    """The first ``size`` features (all where it is 0) of (batch, heads, length, features) turned.

    ``cosines`` and ``sines`` are (batch, 1, length, size / 2). Pairs are neighbours where ``interleaved``, else halves.
    """
    width = node.shape(data)[3]
    if width is None:
        raise node.fail("the size of a head is not known")
    turned = size or width
    if turned > width or turned % 2:
        raise node.fail(f"{turned} of {width} features cannot be rotated in pairs")
    half = turned // 2
    held = node.shape(cosines)[-1]
    if held is not None and held > half:
        cosines, sines = part(cosines, 0, half, 3), part(sines, 0, half, 3)
    elif held is not None and held < half:
        raise node.fail(f"{half} angles are needed, {held} are given")
    if interleaved:
        # Elements and their neighbours: kernels read both as vectors, and parts of two steps as single elements.
        pairs = part(data, 0, turned, 3)
        neighbours = relay.take(pairs, const(np.arange(turned) ^ 1, "int32"), axis=3, mode="fast")
        signs = const(np.tile([-1.0, 1.0], half), node.dtype(sines))
        made: Expr = pairs * relay.repeat(cosines, 2, 3) + neighbours * (relay.repeat(sines, 2, 3) * signs)
    else:
        first, second = part(data, 0, half, 3), part(data, half, turned, 3)
        made = relay.concatenate([first * cosines - second * sines, first * sines + second * cosines], axis=3)
    return made if turned == width else relay.concatenate([made, part(data, turned, width, 3)], axis=3)
