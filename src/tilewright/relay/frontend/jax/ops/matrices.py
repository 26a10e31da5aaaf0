"""Products of matrices."""

from __future__ import annotations

import math

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.jax.node import JaxNode
from tilewright.relay.frontend.jax.ops.elementwise import converted
from tilewright.relay.frontend.jax.ops.shape import permuted, reshaped
from tilewright.relay.frontend.jax.package import bindings
from tilewright.relay.frontend.jax.registry import converter


@converter("dot_general")
def dot_general(node: JaxNode, left: Expr, right: Expr) -> Expr:
    """The product over some dimensions, in batches over others. The result has the batch, then what is left of each."""
    numbers = bindings().stablehlo.DotDimensionNumbers(node.operation.attributes["dot_dimension_numbers"])
    batch = (list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions))
    summed = (list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions))
    return product(node, (left, right), batch, summed)


def product(
    node: JaxNode,
    operands: tuple[Expr, Expr],
    batch: tuple[list[int], list[int]],
    summed: tuple[list[int], list[int]],
) -> Expr:
    """As products of matrices whose rows are both summed along."""
    dtype = node.result_dtype()
    computed = "float32" if dtype == "bool" else dtype
    shapes = [node.static_shape(one) for one in operands]
    count = math.prod(shapes[0][axis] for axis in batch[0])
    inner = math.prod(shapes[0][axis] for axis in summed[0])
    matrices = []
    for operand, shape, together, over in zip(operands, shapes, batch, summed, strict=True):
        kept = [axis for axis in range(len(shape)) if axis not in together and axis not in over]
        rows = math.prod(shape[axis] for axis in kept)
        # Weights are turned where they are stored, so that nothing is left to do at run time.
        turned = permuted(node, operand, [*together, *kept, *over])
        target = [count, rows, inner] if together else [rows, inner]
        flat = turned if list(node.static_shape(turned)) == target else node.reshaped_weight(turned, target)
        matrices.append(converted(node, flat, computed))
    first, second = matrices
    made = relay.nn.batch_matmul(first, second) if batch[0] else relay.nn.dense(first, second)
    return converted(node, reshaped(node, made, node.result_shape()), dtype)


@converter("dot")
def dot(node: JaxNode, left: Expr, right: Expr) -> Expr:
    """The product of vectors and matrices."""
    return product(node, (left, right), ([], []), ([node.rank(left) - 1], [0]))
