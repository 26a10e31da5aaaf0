"""Matrix products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from tilewright import relay
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import Constant
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.onnx.node import Node
from tilewright.relay.frontend.onnx.ops.fused import fused_activation
from tilewright.relay.frontend.onnx.ops.partial_shapes import (
    Extent,
    as_matrices,
    broadcast,
    extents,
    from_matrices,
    reshaped,
    scalar,
)
from tilewright.relay.frontend.onnx.registry import MICROSOFT_DOMAIN, converter


@dataclass(frozen=True)
class Products:
    """The operators that a product consists of: rows times a transposed constant, rows times a matrix, and matrices in
    batches."""

    by_constant: Callable[[Expr, Expr], Expr]
    by_matrix: Callable[[Expr, Expr], Expr]
    in_batches: Callable[[Expr, Expr], Expr]


def _plain_products(out_dtype: str) -> Products:
    return Products(
        lambda a, b: relay.nn.dense(a, b, out_dtype=out_dtype),
        lambda a, b: relay.nn.matmul(a, b, out_dtype=out_dtype),
        lambda a, b: relay.nn.batch_matmul(a, b, out_dtype=out_dtype, transpose_b=False),
    )


def matmul(
    node: Node, a: RelayExpr, b: RelayExpr, out_dtype: str = "", products: Products | None = None
) -> Expr:
    """The product as NumPy has it: vectors are rows or columns, leading dimensions are batches that broadcast."""
    return _product(node, cast(Expr, a), cast(Expr, b), products or _plain_products(out_dtype))


def _product(node: Node, a: Expr, b: Expr, products: Products) -> Expr:
    rank_a, rank_b = node.rank(a), node.rank(b)
    if rank_a == 0 or rank_b == 0:
        raise node.fail("a scalar has no matrix product")
    if rank_a == 1:
        return relay.squeeze(_product(node, relay.expand_dims(a, 0), b, products), axis=[max(rank_b - 2, 0)])
    if rank_b == 1:
        return relay.squeeze(_product(node, a, relay.expand_dims(b, 1), products), axis=[rank_a - 1])
    if rank_b > 2 and all(size == 1 for size in node.shape(b)[:-2]) and rank_a >= rank_b:
        b = relay.squeeze(b, axis=list(range(rank_b - 2)))
        rank_b = 2
    if rank_b == 2:
        return _by_matrix(node, a, b, products)
    a, b = _same_batches(node, a, b)
    made = products.in_batches(as_matrices(node, a), as_matrices(node, b))
    return from_matrices(node, made, a)


def _by_matrix(node: Node, a: Expr, b: Expr, products: Products) -> Expr:
    """Rows, however they are arranged, times one matrix."""
    shape, rank = node.shape(a), node.rank(a)
    rows = a
    flat = rank > 2 and shape[-1] is not None and sum(size is None for size in shape[:-1]) <= 1
    flat = flat and 0 not in shape
    if flat:
        rows = relay.reshape(a, (-1, shape[-1]))
    if isinstance(b, Constant) or b in node.graph.param_values:
        # Weights are transposed once, while the program is compiled.
        made = products.by_constant(rows, relay.transpose(b, (1, 0)))
    else:
        made = products.by_matrix(rows, b)
    if not flat:
        return made
    return reshaped(node, made, [*extents(node, a)[:-1], extents(node, b)[-1]])


def _same_batches(node: Node, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Both operands with the leading dimensions of their broadcast. Of one pair that is not known both are taken to be
    equal, which the product checks when it runs; of several the program finds out."""
    rank = max(node.rank(a), node.rank(b))
    of_a = [1] * (rank - node.rank(a)) + list(node.shape(a))
    of_b = [1] * (rank - node.rank(b)) + list(node.shape(b))
    if node.rank(a) == node.rank(b) and of_a[:-2] == of_b[:-2] and of_a[:-2].count(None) <= 1:
        return a, b
    sizes_a: list[Extent] = [*[1] * (rank - node.rank(a)), *extents(node, a)]
    sizes_b: list[Extent] = [*[1] * (rank - node.rank(b)), *extents(node, b)]
    lead: list[Extent] = []
    for one, other in zip(sizes_a[:-2], sizes_b[:-2], strict=True):
        if (isinstance(one, int) and isinstance(other, int)) or isinstance(one, int):
            lead.append(other if one == 1 else one)
        elif isinstance(other, int):
            lead.append(one if other == 1 else other)
        else:
            lead.append(relay.maximum(scalar(one), scalar(other)))
    return broadcast(node, a, [*lead, *sizes_a[-2:]]), broadcast(node, b, [*lead, *sizes_b[-2:]])


@converter("MatMul")
def matmul_node(node: Node, a: Expr, b: Expr) -> Expr:
    """The product as NumPy has it."""
    return matmul(node, a, b)


@converter("Gemm")
def gemm(node: Node, a: Expr, b: Expr, c: Expr | None = None) -> Expr:
    """alpha * a @ b + beta * c, either matrix transposed first."""
    alpha, beta = float(node.attr("alpha", 1.0)), float(node.attr("beta", 1.0))
    if node.attr("transA", 0):
        a = relay.transpose(a, (1, 0))
    if node.attr("transB", 0):
        made: Expr = relay.nn.dense(a, b)
    else:
        made = _by_matrix(node, a, b, _plain_products(""))
    if alpha != 1:
        made = made * node.constant(alpha, made)
    if c is None or beta == 0:
        return made
    shift = c if beta == 1 else c * node.constant(beta, c)
    if node.rank(c) == 1 and node.shape(c) == node.shape(made)[1:] and node.shape(c)[0] is not None:
        return relay.nn.bias_add(made, shift, axis=1)
    return made + shift


@converter("FusedGemm", domain=MICROSOFT_DOMAIN)
def fused_gemm(node: Node, a: Expr, b: Expr, c: Expr | None = None) -> Expr:
    """Gemm and an activation."""
    return fused_activation(node, gemm(node, a, b, c))


@converter("FusedMatMul", domain=MICROSOFT_DOMAIN)
def fused_matmul(node: Node, a: Expr, b: Expr) -> Expr:
    """alpha * a @ b; matrices, or the first batch axis and the matrices, transposed first."""
    a = _transposed(node, a, bool(node.attr("transBatchA", 0)), bool(node.attr("transA", 0)))
    b = _transposed(node, b, bool(node.attr("transBatchB", 0)), bool(node.attr("transB", 0)))
    made = matmul(node, a, b)
    alpha = float(node.attr("alpha", 1.0))
    return made if alpha == 1 else made * node.constant(alpha, made)


def _transposed(node: Node, data: Expr, batch: bool, matrix: bool) -> Expr:
    rank = node.rank(data)
    axes = list(range(rank))
    if batch and rank > 2:
        # (dim 0, dims 1 to n - 2, n - 1) becomes (dims 1 to n - 2, dim 0, n - 1).
        axes = [*axes[1 : rank - 1], axes[0], axes[-1]]
    if matrix and rank > 1:
        axes[-1], axes[-2] = axes[-2], axes[-1]
    return data if axes == sorted(axes) else relay.transpose(data, axes)
