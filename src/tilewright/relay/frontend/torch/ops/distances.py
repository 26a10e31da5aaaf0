"""Distances, similarities and products of vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.sizes import broadcast_to, sizes_of
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.elementwise import mul, sub
from tilewright.relay.frontend.torch.ops.matrices import common_sizes
from tilewright.relay.frontend.torch.ops.reductions import norm_of
from tilewright.relay.frontend.torch.ops.views import select
from tilewright.relay.frontend.torch.registry import converter


@converter("aten::cdist", "aten::_cdist_forward", "aten::_euclidean_dist")
def cdist(node: TorchNode, x1: Expr, x2: Expr, p: float = 2.0, compute_mode: int | None = None) -> Expr:
    """The distance of every row of one matrix to every row of another."""
    one = relay.expand_dims(x1, node.rank(x1) - 1)
    two = relay.expand_dims(x2, node.rank(x2) - 2)
    apart = relay.subtract(one, two)
    return norm_of(node, apart, float(p), [node.rank(apart) - 1], False)


@converter("aten::pdist", "aten::_pdist_forward")
def pdist(node: TorchNode, input: Expr, p: float = 2.0) -> Expr:
    """The distance of every row to every later one."""
    rows = node.known_size(input, 0)
    first, second = np.triu_indices(rows, 1)
    apart = relay.subtract(
        relay.take(input, const(first.astype("int64")), axis=0),
        relay.take(input, const(second.astype("int64")), axis=0),
    )
    return norm_of(node, apart, float(p), [1], False)


@converter("aten::pairwise_distance")
def pairwise_distance(
    node: TorchNode, x1: Expr, x2: Expr, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Expr:
    """The distance of each row to that of another tensor."""
    apart = relay.add(relay.subtract(x1, x2), node.constant(eps, x1))
    return norm_of(node, apart, float(p), [node.rank(apart) - 1], keepdim)


@converter("aten::cosine_similarity")
def cosine_similarity(node: TorchNode, x1: Expr, x2: Expr, dim: int = 1, eps: float = 1e-8) -> Expr:
    """The cosine of the angle between vectors."""
    one, two = node.promoted(x1, x2)
    shape = common_sizes(node, sizes_of(node, one), sizes_of(node, two))
    one, two = broadcast_to(node, one, shape), broadcast_to(node, two, shape)
    axes = [node.axis_of(dim, len(shape))] if shape else []
    small = node.constant(eps, one)
    lengths = [relay.maximum(norm_of(node, data, 2, axes, True), small) for data in (one, two)]
    found = relay.multiply(relay.divide(one, lengths[0]), relay.divide(two, lengths[1]))
    return relay.sum(found, axes) if axes else found


@converter("aten::cross", "aten::linalg_cross")
def cross(node: TorchNode, input: Expr, other: Expr, dim: int | None = None) -> Expr:
    """The vector at right angles to two others."""
    shape = node.shape(input)
    if dim is None:
        dim = (
            next(axis for axis, size in enumerate(shape) if size == 3) if "linalg" not in node.op_type else -1
        )
    rank = max(node.rank(input), node.rank(other))
    axis = node.axis_of(dim, rank)

    def component(data: Expr, place: int) -> Expr:
        return select(node, data, axis - (rank - node.rank(data)), place % 3)

    parts = []
    for place in range(3):
        one = mul(node, component(input, place + 1), component(other, place + 2))
        two = mul(node, component(input, place + 2), component(other, place + 1))
        parts.append(sub(node, one, two))
    return relay.stack(parts, axis)


@converter("aten::renorm")
def renorm(node: TorchNode, input: Expr, p: Any, dim: int, maxnorm: Any) -> Expr:
    """Slices along an axis made no longer than a limit."""
    axis = node.axis_of(dim, node.rank(input))
    others = [one for one in range(node.rank(input)) if one != axis]
    length = norm_of(node, input, float(p), others, True)
    limit = node.constant(float(maxnorm), input)
    factor = relay.divide(limit, relay.add(length, node.constant(1e-7, input)))
    one = node.constant(1.0, input)
    return relay.multiply(input, relay.where(relay.greater(length, limit), factor, one))
