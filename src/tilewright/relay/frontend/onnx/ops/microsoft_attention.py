"""Attention as Microsoft's optimiser and exporters write it: Attention, MultiHeadAttention, GroupQueryAttention."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.attention import rotated
from tilewright.relay.frontend.onnx.ops.attention_core import (
    added,
    attend,
    hidden_unless,
    merge_heads,
    positions,
    split_heads,
    window_allowed,
)
from tilewright.relay.frontend.onnx.ops.matrices import matmul
from tilewright.relay.frontend.onnx.ops.partial_shapes import Extent, arange, combined, extent, part, scalar
from tilewright.relay.frontend.onnx.registry import MICROSOFT_DOMAIN, converter


def _refuse(node: Node, **given: object) -> None:
    """An error about inputs and attributes that are not supported."""
    names = [name for name, value in given.items() if value]
    if names:
        raise node.fail(f"{', '.join(names)}: not supported")


def _scale(node: Node) -> float | None:
    """The scale; zero and nothing both stand for that of the size."""
    return float(node.attr("scale", 0.0)) or None


def _causal(node: Node, queries: Expr, keys: Expr, offset: Extent) -> Expr | None:
    if not node.attr("unidirectional", 0):
        return None
    allowed = window_allowed(node, positions(node, queries, offset), extent(node, keys, 2), None, 0)
    return hidden_unless(allowed, node.dtype(queries))


def _padding_bias(node: Node, mask: Expr | None, queries: Expr, keys: Expr) -> Expr | None:
    """The bias of an integer mask: ``mask_filter_value`` where it is 0."""
    if mask is None:
        return None
    rank, dtype = node.rank(mask), node.dtype(queries)
    count = extent(node, keys, 2)
    if rank == 1:
        batch, given = node.shape(queries)[0], node.shape(mask)[0]
        if batch is None or given not in (batch, 2 * batch):
            raise node.fail(f"a mask of {given} numbers for a batch of {batch} is not supported")
        columns = arange(count)
        ends = relay.reshape(relay.cast(part(mask, 0, batch, 0), "int64"), (-1, 1, 1, 1))
        seen = relay.less(columns, ends)
        if given == 2 * batch:
            starts = relay.reshape(relay.cast(part(mask, batch, 2 * batch, 0), "int64"), (-1, 1, 1, 1))
            seen = relay.logical_and(seen, relay.greater_equal(columns, starts))
    elif rank == 2:
        seen = relay.expand_dims(relay.not_equal(mask, const(0, node.dtype(mask))), axis=1, num_newaxis=2)
    elif rank == 3:
        seen = relay.expand_dims(relay.not_equal(mask, const(0, node.dtype(mask))), axis=1)
    else:
        raise node.fail(f"a mask of {rank} dimensions is not supported")
    value = float(node.attr("mask_filter_value", -10000.0))
    return relay.where(seen, const(0.0, dtype), const(max(value, float(np.finfo(dtype).min)), dtype))


@converter("Attention", domain=MICROSOFT_DOMAIN)
def attention(
    node: Node,
    data: Expr,
    weights: Expr,
    bias: Expr | None = None,
    mask: Expr | None = None,
    past: Expr | None = None,
    attention_bias: Expr | None = None,
    past_length: Expr | None = None,
) -> Sequence[Expr]:
    """Attention with the projection to queries, keys and values."""
    _refuse(
        node,
        past_sequence_length=past_length is not None,
        do_rotary=node.attr("do_rotary", 0),
        past_present_share_buffer=node.attr("past_present_share_buffer", 0),
    )
    width = node.static_shape(weights, "the weights")[1]
    sizes = [int(size) for size in node.attr("qkv_hidden_sizes", None) or [width // 3] * 3]
    if len(sizes) != 3 or sum(sizes) != width:
        raise node.fail(f"weights of {width} columns do not hold queries, keys and values of {sizes}")
    projected = matmul(node, data, weights)
    if bias is not None:
        projected = projected + bias
    return attention_of_projection(node, projected, sizes, mask, past, attention_bias)


def attention_of_projection(
    node: Node,
    projected: Expr,
    sizes: Sequence[int],
    mask: Expr | None = None,
    past: Expr | None = None,
    attention_bias: Expr | None = None,
) -> Sequence[Expr]:
    """Attention of queries, keys and values that lie beside each other in one tensor; ``sizes`` are their features."""
    heads = int(node.attr("num_heads"))
    ends = np.cumsum([0, *sizes])
    queries, keys, values = (
        split_heads(node, part(projected, int(ends[i]), int(ends[i + 1]), 2), heads) for i in range(3)
    )
    offset: Extent = 0
    if past is not None:
        offset = extent(node, past, 3)
        before_keys, before_values = (relay.squeeze(part(past, i, i + 1, 0), axis=[0]) for i in (0, 1))
        keys = relay.concatenate([before_keys, keys], axis=2)
        values = relay.concatenate([before_values, values], axis=2)
    total = added(_padding_bias(node, mask, queries, keys), attention_bias)
    total = added(total, _causal(node, queries, keys, offset))
    made = attend(node, queries, keys, values, scale=_scale(node), bias=total)
    result = merge_heads(made.result)
    return [result, relay.stack([keys, values], axis=0)] if node.wants(1) else [result]


@converter("MultiHeadAttention", domain=MICROSOFT_DOMAIN)
def multi_head_attention(
    node: Node,
    queries: Expr,
    keys: Expr | None = None,
    values: Expr | None = None,
    bias: Expr | None = None,
    mask: Expr | None = None,
    attention_bias: Expr | None = None,
    past_keys: Expr | None = None,
    past_values: Expr | None = None,
    past_length: Expr | None = None,
    indirection: Expr | None = None,
) -> Sequence[Expr]:
    """Attention of queries, keys and values that are projected already, or packed into one tensor."""
    _refuse(node, past_sequence_length=past_length is not None, cache_indirection=indirection is not None)
    heads = int(node.attr("num_heads"))
    q, k, v = _unpacked(node, queries, keys, values, bias, heads)
    offset: Extent = 0
    if past_keys is not None and past_values is not None:
        offset = extent(node, past_keys, 2)
        k = relay.concatenate([past_keys, k], axis=2)
        v = relay.concatenate([past_values, v], axis=2)
    total = added(_padding_bias(node, mask, q, k), attention_bias)
    total = added(total, _causal(node, q, k, offset))
    made = attend(node, q, k, v, scale=_scale(node), bias=total)
    return [merge_heads(made.result), k, v, made.weights][: max(node.num_outputs, 1)]


def _unpacked(
    node: Node,
    queries: Expr,
    keys: Expr | None,
    values: Expr | None,
    bias: Expr | None,
    heads: int,
) -> tuple[Expr, Expr, Expr]:
    """Queries, keys and values as (batch, heads, length, size), with their biases added."""
    if node.rank(queries) == 5:
        _refuse(node, bias=bias is not None)
        first, second, third = _parts(queries, 3)
        return first, second, third
    if keys is None:
        raise node.fail("the keys are missing")
    width = node.shape(queries)[2]
    biases: list[Expr | None] = [None] * 3
    if bias is not None:
        if width is None:
            raise node.fail("the number of features is not known")
        ends = (0, width, 2 * width, node.static_shape(bias, "the bias")[0])
        biases = [part(bias, ends[i], ends[i + 1], 0) for i in range(3)]

    def heads_of(data: Expr, shift: Expr | None) -> Expr:
        if node.rank(data) == 4:
            return data
        return split_heads(node, data if shift is None else data + shift, heads)

    if node.rank(keys) == 5:
        second, third = _parts(keys, 2)
        return heads_of(queries, biases[0]), second, third
    if values is None:
        raise node.fail("the values are missing")
    return heads_of(queries, biases[0]), heads_of(keys, biases[1]), heads_of(values, biases[2])


def _parts(packed: Expr, count: int) -> list[Expr]:
    """(batch, length, heads, parts, size) as parts of (batch, heads, length, size)."""
    return [
        relay.transpose(relay.squeeze(part(packed, i, i + 1, 3), axis=[3]), (0, 2, 1, 3))
        for i in range(count)
    ]


@converter("RotaryEmbedding", domain=MICROSOFT_DOMAIN)
def rotary_embedding(node: Node, data: Expr, position_ids: Expr, cosines: Expr, sines: Expr) -> Expr:
    """Pairs of features turned by angles that grow with the position, which is given or counted from an offset."""
    _refuse(node, is_packed_batching=node.attr("is_packed_batching", 0))
    flat = node.rank(data) == 3
    size = int(node.attr("rotary_embedding_dim", 0))
    heads = int(node.attr("num_heads", 0))
    if flat and not heads:
        half, width = node.shape(cosines)[1], node.shape(data)[2]
        if half is None or width is None:
            raise node.fail("the number of heads is not known")
        heads = width // (2 * half)
    split = split_heads(node, data, heads) if flat else data
    if node.rank(position_ids) == 1:
        numbers = arange(extent(node, split, 2)) + relay.cast(position_ids, "int64")
        angles = [relay.expand_dims(relay.take(each, numbers, axis=0), axis=0) for each in (cosines, sines)]
    else:
        angles = [relay.take(each, position_ids, axis=0) for each in (cosines, sines)]
    first, second = (relay.expand_dims(each, axis=1) for each in angles)
    made = rotated(node, split, first, second, size, bool(node.attr("interleaved", 0)))
    return merge_heads(made) if flat else made


@converter("GroupQueryAttention", domain=MICROSOFT_DOMAIN)
def group_query_attention(
    node: Node,
    queries: Expr,
    keys: Expr | None,
    values: Expr | None,
    past_keys: Expr | None,
    past_values: Expr | None,
    ends: Expr,
    total: Expr,
    cosines: Expr | None = None,
    sines: Expr | None = None,
    position_ids: Expr | None = None,
    attention_bias: Expr | None = None,
    *others: Expr | None,
) -> Sequence[Expr]:
    """Causal attention with a cache; ``ends`` is the last position of each item, ``total`` the longest length."""
    _refuse(
        node,
        **{
            "a sink, scales of the cache or norms of queries and keys": any(
                each is not None for each in others
            ),
            "smooth_softmax": node.attr("smooth_softmax", 0) == 1,
            "sliding_window_cache": node.attr("sliding_window_cache", 0),
            "qk_output": node.attr("qk_output", 0),
            "causal=0": not node.attr("causal", 1),
        },
    )
    heads, shared = int(node.attr("num_heads")), int(node.attr("kv_num_heads"))
    if keys is None or values is None:
        width = node.static_shape(queries)[2]
        size = width // (heads + 2 * shared)
        bounds = [0, heads * size, (heads + shared) * size, width]
        queries, keys, values = (part(queries, bounds[i], bounds[i + 1], 2) for i in range(3))
    q, k, v = (
        split_heads(node, queries, heads),
        split_heads(node, keys, shared),
        split_heads(node, values, shared),
    )
    length = extent(node, q, 2)
    last = relay.cast(relay.reshape(ends, (-1,)), "int64") + const(1, "int64")
    # Of a prompt that is padded at its end, nothing is past.
    start = relay.maximum(last - scalar(length), const(0, "int64"))
    if node.attr("do_rotary", 0):
        if cosines is None or sines is None:
            raise node.fail("cosines and sines are missing")
        numbers = position_ids
        if numbers is None:
            numbers = relay.expand_dims(start, axis=1) + relay.expand_dims(arange(length), axis=0)
        angles = [relay.expand_dims(relay.take(each, numbers, axis=0), axis=1) for each in (cosines, sines)]
        interleaved = bool(node.attr("rotary_interleaved", 0))
        q, k = (
            rotated(node, each, angles[0], angles[1], _turned(node, cosines), interleaved) for each in (q, k)
        )
    if past_keys is not None and past_values is not None:
        k, v = _joined(node, past_keys, k, start, total), _joined(node, past_values, v, start, total)
    rows = positions(node, q, relay.reshape(start, (-1, 1, 1, 1)))
    window = int(node.attr("local_window_size", -1))
    # A window counts the query itself.
    allowed = window_allowed(node, rows, extent(node, k, 2), window - 1 if window > 0 else None, 0)
    bias = added(attention_bias, hidden_unless(allowed, node.dtype(q)))
    made = attend(node, q, k, v, scale=_scale(node), bias=bias, softcap=float(node.attr("softcap", 0.0)))
    return [merge_heads(made.result), k, v][: max(node.num_outputs, 1)]


def _turned(node: Node, cosines: Expr) -> int:
    half = node.shape(cosines)[1]
    if half is None:
        raise node.fail("the size of the rotation is not known")
    return 2 * half


def _joined(node: Node, past: Expr, new: Expr, start: Expr, total: Expr) -> Expr:
    """The cache with new elements from ``start`` of each item on; as long as it was, or as the longest item."""
    held = extent(node, past, 2)
    if held == 0:
        return new
    known = node.value(total)
    longest: Extent = (
        int(known.reshape(-1)[0]) if known is not None else relay.reshape(relay.cast(total, "int64"), ())
    )
    if isinstance(held, int) and isinstance(longest, int) and longest <= held:
        # A cache of fixed capacity, which executors can update in place.
        places = relay.reshape(start, (-1, 1, 1, 1)) + relay.reshape(
            arange(extent(node, new, 2)), (1, 1, -1, 1)
        )
        return relay.scatter(past, relay.broadcast_to_like(places, new), new, 2)
    if isinstance(held, int) and isinstance(longest, int):
        count: Extent = longest
    else:
        count = relay.maximum(scalar(held), scalar(longest))
    pool = relay.concatenate([past, new], axis=2)
    place = relay.expand_dims(arange(count), axis=0)
    begin = relay.expand_dims(start, axis=1)
    # Before the start from the cache; from there on from what is new, which is after the cache.
    source = relay.where(relay.less(place, begin), place, place - begin + scalar(held))
    final = combined(held, extent(node, new, 2), lambda a, b: a + b)
    source = relay.minimum(source, scalar(final) - const(1, "int64"))
    return relay.take(pool, source, axis=2, batch_dims=1)
