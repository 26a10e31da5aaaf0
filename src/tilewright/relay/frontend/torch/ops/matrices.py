"""Matrix products."""

from __future__ import annotations

from typing import Any

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common.sizes import (
    Size,
    broadcast_to,
    multiplied,
    reshaped,
    size_of,
    sizes_of,
)
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.elementwise import add, mul
from tilewright.relay.frontend.torch.registry import converter


def flattened_rows(node: TorchNode, data: Expr) -> Expr:
    """A tensor as a matrix whose rows are its innermost axis."""
    if node.rank(data) == 2:
        return data
    last = size_of(node, data, -1)
    return reshaped(node, data, [multiplied(sizes_of(node, data)[:-1]), last])


@converter("aten::linear")
def linear(node: TorchNode, input: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """Rows times a transposed weight."""
    if node.rank(weight) == 1:
        made = matmul(node, input, weight)
        return made if bias is None else add(node, made, bias)
    if node.rank(input) == 1:
        return relay.squeeze(linear(node, relay.expand_dims(input, 0), weight, bias), axis=[0])
    made = relay.nn.dense(flattened_rows(node, input), weight)
    if bias is not None:
        made = relay.nn.bias_add(made, bias, axis=1) if node.rank(bias) == 1 else relay.add(made, bias)
    if node.rank(input) == 2:
        return made
    return reshaped(node, made, [*sizes_of(node, input)[:-1], size_of(node, weight, 0)])


@converter("aten::mm")
def mm(node: TorchNode, input: Expr, mat2: Expr, out_dtype: str | None = None) -> Expr:
    """The product of two matrices."""
    if out_dtype is not None:
        input, mat2 = node.cast(input, out_dtype), node.cast(mat2, out_dtype)
    # Weights are transposed once, while the program is compiled; other matrices need not be.
    return relay.nn.dense(input, relay.transpose(mat2, (1, 0)))


@converter("aten::bmm")
def bmm(node: TorchNode, input: Expr, mat2: Expr, out_dtype: str | None = None) -> Expr:
    """The products of two stacks of matrices."""
    if out_dtype is not None:
        input, mat2 = node.cast(input, out_dtype), node.cast(mat2, out_dtype)
    return relay.nn.batch_matmul(input, mat2, transpose_b=False)


@converter("aten::matmul", "aten::linalg_matmul", "aten::__matmul__")
def matmul(node: TorchNode, input: Expr, other: Expr) -> Expr:
    """The product as NumPy has it: vectors are rows or columns, leading dimensions are batches that broadcast."""
    left, right = node.rank(input), node.rank(other)
    if left == 1 and right == 1:
        return relay.sum(relay.multiply(input, other))
    if left == 1:
        made = matmul(node, relay.expand_dims(input, 0), other)
        return relay.squeeze(made, axis=[node.rank(made) - 2])
    if right == 1:
        made = matmul(node, input, relay.expand_dims(other, 1))
        return relay.squeeze(made, axis=[node.rank(made) - 1])
    if right == 2:
        made = mm(node, flattened_rows(node, input), other)
        if left == 2:
            return made
        return reshaped(node, made, [*sizes_of(node, input)[:-1], size_of(node, other, -1)])
    lead = common_sizes(node, sizes_of(node, input)[:-2], sizes_of(node, other)[:-2])
    one = _as_batches(node, input, lead)
    two = _as_batches(node, other, lead)
    made = relay.nn.batch_matmul(one, two, transpose_b=False)
    return reshaped(node, made, [*lead, size_of(node, input, -2), size_of(node, other, -1)])


def _as_batches(node: TorchNode, data: Expr, lead: list[Size]) -> Expr:
    """Matrices with these leading dimensions, as one stack."""
    inner = [size_of(node, data, -2), size_of(node, data, -1)]
    if node.shape(data)[:-2] != tuple(size if isinstance(size, int) else None for size in lead):
        data = broadcast_to(node, data, [*lead, *inner])
    elif len(lead) == 1:
        return data
    return reshaped(node, data, [multiplied(lead), *inner])


def common_sizes(node: TorchNode, one: list[Size], other: list[Size]) -> list[Size]:
    """The sizes of two tensors that are broadcast."""
    rank = max(len(one), len(other))
    found: list[Size] = []
    for first, second in zip([1] * (rank - len(one)) + one, [1] * (rank - len(other)) + other, strict=True):
        if isinstance(first, int) and (first != 1 or isinstance(second, int)):
            found.append(second if first == 1 else first)
        elif isinstance(second, int):
            found.append(first if second == 1 else second)
        else:
            found.append(second if isinstance(first, int) else relay.maximum(first, second))
    return found


@converter("aten::mv")
def mv(node: TorchNode, input: Expr, vec: Expr) -> Expr:
    """A matrix times a vector."""
    return matmul(node, input, vec)


@converter("aten::linalg_vecdot")
def vecdot(node: TorchNode, x: Expr, y: Expr, dim: int = -1) -> Expr:
    """Sums of products along an axis."""
    products = mul(node, x, y)
    return relay.sum(products, [node.axis_of(dim, node.rank(products))])


@converter("aten::dot", "aten::inner", "aten::vdot")
def dot(node: TorchNode, input: Expr, tensor: Expr | None = None, other: Expr | None = None) -> Expr:
    """Sums of products along the last axes of two tensors."""
    right = tensor if tensor is not None else other
    assert right is not None
    if not node.rank(input) or not node.rank(right):
        return mul(node, input, right)
    if node.rank(input) == 1 and node.rank(right) == 1:
        return relay.sum(relay.multiply(input, right))
    made = relay.nn.dense(flattened_rows(node, _row(node, input)), flattened_rows(node, _row(node, right)))
    return reshaped(node, made, [*sizes_of(node, input)[:-1], *sizes_of(node, right)[:-1]])


def _row(node: TorchNode, data: Expr) -> Expr:
    return relay.expand_dims(data, 0) if node.rank(data) == 1 else data


@converter("aten::outer", "aten::ger")
def outer(node: TorchNode, input: Expr, vec2: Expr) -> Expr:
    """Every product of two vectors' elements."""
    return mul(node, relay.expand_dims(input, 1), relay.expand_dims(vec2, 0))


def _combined(node: TorchNode, start: Expr, product: Expr, beta: Any, alpha: Any) -> Expr:
    """beta * start + alpha * product, in the type of the tensors: factors are converted to it."""
    dtype = node.result_dtype(start, product)
    scaled = node.cast(product, dtype)
    if alpha != 1:
        scaled = mul(node, scaled, node.cast(alpha, dtype))
    if beta == 0:
        return scaled
    begin = node.cast(start, dtype)
    return add(node, begin if beta == 1 else mul(node, begin, node.cast(beta, dtype)), scaled)


@converter("aten::addmm")
def addmm(node: TorchNode, input: Expr, mat1: Expr, mat2: Expr, beta: Any = 1, alpha: Any = 1) -> Expr:
    """A product of matrices, added to a tensor."""
    product = mm(node, mat1, mat2)
    columns = node.shape(product)[1]
    if beta == 1 and alpha == 1 and node.shape(input) == (columns,) and columns is not None:
        return relay.nn.bias_add(product, input, axis=1)
    return _combined(node, input, product, beta, alpha)


@converter("aten::addmv")
def addmv(node: TorchNode, input: Expr, mat: Expr, vec: Expr, beta: Any = 1, alpha: Any = 1) -> Expr:
    """A product of a matrix and a vector, added to a tensor."""
    return _combined(node, input, matmul(node, mat, vec), beta, alpha)


@converter("aten::addr")
def addr(node: TorchNode, input: Expr, vec1: Expr, vec2: Expr, beta: Any = 1, alpha: Any = 1) -> Expr:
    """An outer product, added to a tensor."""
    return _combined(node, input, outer(node, vec1, vec2), beta, alpha)


@converter("aten::baddbmm")
def baddbmm(node: TorchNode, input: Expr, batch1: Expr, batch2: Expr, beta: Any = 1, alpha: Any = 1) -> Expr:
    """Products of stacks of matrices, added to a tensor."""
    return _combined(node, input, bmm(node, batch1, batch2), beta, alpha)


@converter("aten::addbmm")
def addbmm(node: TorchNode, input: Expr, batch1: Expr, batch2: Expr, beta: Any = 1, alpha: Any = 1) -> Expr:
    """The sum of products of stacks of matrices, added to a tensor."""
    return _combined(node, input, relay.sum(bmm(node, batch1, batch2), axis=[0]), beta, alpha)


@converter("aten::chain_matmul", "aten::linalg_multi_dot")
def chain_matmul(
    node: TorchNode, matrices: list[Expr] | None = None, tensors: list[Expr] | None = None
) -> Expr:
    """A product of several matrices."""
    first, *others = matrices or tensors or []
    for other in others:
        first = matmul(node, first, other)
    return first


@converter("aten::einsum")
def einsum(node: TorchNode, equation: str, tensors: list[Expr], path: Any = None) -> Expr:
    """Sums of products over named axes."""
    dtype = node.result_dtype(*tensors)
    return relay.einsum([node.cast(one, dtype) for one in tensors], equation.replace(" ", ""))


@converter("aten::bilinear")
def bilinear(node: TorchNode, input1: Expr, input2: Expr, weight: Expr, bias: Expr | None = None) -> Expr:
    """x1 W x2 for each of a stack of weights."""
    rows, columns = flattened_rows(node, _row(node, input1)), flattened_rows(node, _row(node, input2))
    outputs, left, right = node.static_shape(weight, "the weight")
    flat = relay.reshape(relay.transpose(weight, (0, 2, 1)), (outputs * right, left))
    partial = relay.reshape(relay.nn.dense(rows, flat), (-1, outputs, right))
    made = relay.sum(relay.multiply(partial, relay.expand_dims(columns, 1)), axis=[2])
    made = made if bias is None else relay.nn.bias_add(made, bias, axis=1)
    return reshaped(node, made, [*sizes_of(node, input1)[:-1], outputs])
