"""Matrix products."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.sizes import Size, broadcast_to, multiplied, reshaped, sizes_of
from tilewright.relay.frontend.tensorflow.registry import converter


@converter("MatMul")
def matmul(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """The product of two matrices, each of which may be transposed."""
    flip_left = bool(node.attr("transpose_a", False))
    flip_right = bool(node.attr("transpose_b", False))
    if flip_left:
        left = relay.transpose(left, (1, 0))
    weight = right if flip_right else node.permuted(right, (1, 0))
    return relay.nn.dense(left, weight, units=node.shape(weight)[0])


@converter("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "BATCH_MATMUL")
def batch_matmul(node: GraphNode, left: Expr, right: Expr) -> Expr:
    """Products of matrices; leading axes are batches, which broadcast."""
    return products(node, left, right, bool(node.attr("adj_x", False)), bool(node.attr("adj_y", False)))


def products(node: GraphNode, left: Expr, right: Expr, flip_left: bool, flip_right: bool) -> Expr:
    """Products of matrices, each of which may be transposed."""
    if flip_left:
        left = _flipped(node, left)
    if node.rank(right) == 2 and node.rank(left) >= 2:
        # A weight: one product of all rows.
        sizes = sizes_of(node, left)
        rows = reshaped(node, left, [multiplied(sizes[:-1]), sizes[-1]])
        weight = right if flip_right else node.permuted(right, (1, 0))
        made: Expr = relay.nn.dense(rows, weight, units=node.shape(weight)[0])
        return reshaped(node, made, [*sizes[:-1], sizes_of(node, weight)[0]])
    lead = _broadcast(node, left, right)
    stacks = []
    for one in (left, right):
        matrix = sizes_of(node, one)[-2:]
        spread = (
            one if len(lead) == 1 and _fits(node, one, lead) else broadcast_to(node, one, [*lead, *matrix])
        )
        stacks.append(reshaped(node, spread, [multiplied(lead), *matrix]))
    made = relay.nn.batch_matmul(stacks[0], stacks[1], transpose_a=False, transpose_b=flip_right)
    last = sizes_of(node, right)[-2 if flip_right else -1]
    return reshaped(node, made, [*lead, sizes_of(node, left)[-2], last])


def _fits(node: GraphNode, data: Expr, lead: list[Size]) -> bool:
    return node.rank(data) == 3 and (
        node.shape(data)[0] == lead[0] or (node.shape(data)[0] is None and not isinstance(lead[0], int))
    )


def _flipped(node: GraphNode, data: Expr) -> Expr:
    rank = node.rank(data)
    return relay.transpose(data, [*range(rank - 2), rank - 1, rank - 2])


def _broadcast(node: GraphNode, left: Expr, right: Expr) -> list[Size]:
    """The leading axes of a product."""
    one, other = sizes_of(node, left)[:-2], sizes_of(node, right)[:-2]
    count = max(len(one), len(other))
    one, other = ([*[1] * (count - len(sizes)), *sizes] for sizes in (one, other))
    return [
        second if isinstance(first, int) and first == 1 else first
        for first, second in zip(one, other, strict=True)
    ]


@converter("Einsum")
def einsum(node: GraphNode, *operands: Expr) -> Expr:
    """A sum of products by an equation."""
    return relay.einsum(list(operands), str(node.attr("equation")))


@converter("_FusedMatMul")
def fused_matmul(node: GraphNode, left: Expr, right: Expr, *more: Expr) -> Expr:
    """A product with a bias and an activation."""
    return _with_epilogue(node, matmul(node, left, right), more)


def _with_epilogue(node: GraphNode, made: Expr, more: tuple[Any, ...]) -> Expr:
    for name in node.attr("fused_ops", []):
        if name == "BiasAdd":
            made = relay.add(made, more[0])
        elif name == "Relu":
            made = relay.nn.relu(made)
        else:
            raise node.fail(f"the fused operator {name!r} is not supported")
    return made
