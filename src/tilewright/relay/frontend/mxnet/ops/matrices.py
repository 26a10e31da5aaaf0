"""Products of matrices."""

from __future__ import annotations

from math import prod

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.mxnet.node import SymbolNode
from tilewright.relay.frontend.mxnet.registry import converter


@converter("dot")
def dot(node: SymbolNode, left: Expr, right: Expr) -> Expr:
    """Sums over the last axis of one tensor and the first of another; transposed, over the other ends."""
    if node.flag("transpose_a"):
        left = relay.transpose(left, [*range(1, node.rank(left)), 0])
    if node.flag("transpose_b"):
        last = node.rank(right) - 1
        right = relay.transpose(right, [last, *range(last)])
    before, after = node.static_shape(left), node.static_shape(right)
    if not before or not after or before[-1] != after[0]:
        raise node.fail(f"the shapes {before} and {after} do not fit")
    rows = relay.reshape(left, (prod(before[:-1]), before[-1]))
    columns = relay.transpose(relay.reshape(right, (after[0], prod(after[1:]))), [1, 0])
    product = relay.nn.dense(rows, columns, units=prod(after[1:]))
    # MXNet gives the product of vectors as a vector of one.
    return relay.reshape(product, (*before[:-1], *after[1:]) or (1,))


def products(node: SymbolNode, left: Expr, right: Expr, transpose_left: bool, transpose_right: bool) -> Expr:
    """Products of matrices in the last two axes; the axes before are the same in both."""
    if node.rank(left) == node.rank(right) == 3:
        return relay.nn.batch_matmul(left, right, transpose_a=transpose_left, transpose_b=transpose_right)
    lead = node.static_shape(left)[:-2]
    first, second = (relay.reshape(one, (prod(lead), *node.static_shape(one)[-2:])) for one in (left, right))
    made = relay.nn.batch_matmul(first, second, transpose_a=transpose_left, transpose_b=transpose_right)
    return relay.reshape(made, (*lead, *node.static_shape(made)[-2:]))


@converter("batch_dot", "_npx_batch_dot")
def batch_dot(node: SymbolNode, left: Expr, right: Expr) -> Expr:
    """Products of pairs of matrices."""
    return products(node, left, right, node.flag("transpose_a"), node.flag("transpose_b"))


@converter("linalg_gemm2", "_linalg_gemm2")
def gemm2(node: SymbolNode, left: Expr, right: Expr) -> Expr:
    """Products of pairs of matrices times a number."""
    if node.integer("axis", -2) != -2:
        raise node.fail("only the axis -2 is supported")
    made = products(node, left, right, node.flag("transpose_a"), node.flag("transpose_b"))
    alpha = node.number("alpha", 1.0)
    return made if alpha == 1.0 else relay.multiply(made, node.constant(alpha, made))


@converter("linalg_gemm", "_linalg_gemm")
def gemm(node: SymbolNode, left: Expr, right: Expr, more: Expr) -> Expr:
    """Products of pairs of matrices times a number, plus matrices times another."""
    return relay.add(
        gemm2(node, left, right), relay.multiply(more, node.constant(node.number("beta", 1.0), more))
    )
