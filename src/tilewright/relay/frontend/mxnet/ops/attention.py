"""Attention as GluonNLP's transformers have it: queries, keys and values interleaved in one tensor."""

from __future__ import annotations

from math import sqrt

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter


@converter("_contrib_div_sqrt_dim")
def div_sqrt_dim(node: SymbolNode, data: Expr) -> Expr:
    """Elements divided by the root of the last size."""
    return relay.divide(data, node.constant(sqrt(node.static_shape(data)[-1]), data))


def _parts(node: SymbolNode, data: Expr, count: int) -> list[Expr]:
    """(length, batch, heads * count * size) as ``count`` tensors (batch * heads, length, size)."""
    heads = node.integer("heads")
    length, batch, width = node.static_shape(data)
    if heads < 1 or width % (heads * count):
        raise node.fail(f"{width} features are not {count} parts of {heads} heads")
    size = width // (heads * count)
    apart = relay.reshape(data, (length, batch * heads, count, size))
    turned = relay.transpose(apart, [2, 1, 0, 3])
    return [
        relay.squeeze(relay.strided_slice(turned, [place], [place + 1], [1], axes=[0]), axis=[0])
        for place in range(count)
    ]


def _scores(node: SymbolNode, queries: Expr, keys: Expr) -> Expr:
    scale = sqrt(node.static_shape(queries)[-1])
    return relay.nn.batch_matmul(relay.divide(queries, node.constant(scale, queries)), keys)


def _weighted(node: SymbolNode, weights: Expr, values: Expr) -> Expr:
    """(batch * heads, length, size) as (length, batch, heads * size)."""
    heads = node.integer("heads")
    made = relay.nn.batch_matmul(weights, values, transpose_b=False)
    rows, length, size = node.static_shape(made)
    return relay.reshape(relay.transpose(made, [1, 0, 2]), (length, rows // heads, heads * size))


@converter("_contrib_interleaved_matmul_selfatt_qk")
def self_scores(node: SymbolNode, data: Expr) -> Expr:
    """The scores of queries and keys."""
    queries, keys, _ = _parts(node, data, 3)
    return _scores(node, queries, keys)


@converter("_contrib_interleaved_matmul_selfatt_valatt")
def self_values(node: SymbolNode, data: Expr, weights: Expr) -> Expr:
    """The values weighted by attention."""
    return _weighted(node, weights, _parts(node, data, 3)[2])


@converter("_contrib_interleaved_matmul_encdec_qk")
def crossed_scores(node: SymbolNode, queries: Expr, pairs: Expr) -> Expr:
    """The scores of a decoder's queries and an encoder's keys."""
    return _scores(node, _parts(node, queries, 1)[0], _parts(node, pairs, 2)[0])


@converter("_contrib_interleaved_matmul_encdec_valatt")
def crossed_values(node: SymbolNode, pairs: Expr, weights: Expr) -> Expr:
    """An encoder's values weighted by attention."""
    return _weighted(node, weights, _parts(node, pairs, 2)[1])
