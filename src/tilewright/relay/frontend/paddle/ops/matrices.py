"""Products of matrices."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr
from tilewright.relay.frontend.common.sizes import multiplied, reshaped, sizes_of
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.registry import converter
from tilewright.relay.frontend.tensorflow.ops.matrices import products


def matrix_product(node: PaddleNode, left: Expr, right: Expr, flip_left: bool, flip_right: bool) -> Expr:
    """A product as ``numpy.matmul`` has it: vectors are rows on the left, columns on the right."""
    row, column = node.rank(left) == 1, node.rank(right) == 1
    if row:
        left, flip_left = relay.expand_dims(left, 0), False
    if column:
        right, flip_right = relay.expand_dims(right, 1), False
    made = products(node, left, right, flip_left, flip_right)
    gone = [axis for axis, single in ((-2, row), (-1, column)) if single]
    return relay.squeeze(made, axis=[axis % node.rank(made) for axis in gone]) if gone else made


@converter("matmul_v2", reads="X Y")
def matmul(node: PaddleNode, left: Expr, right: Expr) -> Expr:
    """Products of matrices."""
    flips = [node.flag(f"trans_{side}", node.flag(f"transpose_{side}")) for side in "xy"]
    return matrix_product(node, left, right, *flips)


@converter("matmul", reads="X Y")
def matmul_scaled(node: PaddleNode, left: Expr, right: Expr) -> Expr:
    """Products of matrices times a number."""
    made = matrix_product(node, left, right, node.flag("transpose_X"), node.flag("transpose_Y"))
    alpha = node.real("alpha", 1.0)
    return made if alpha == 1.0 else relay.multiply(made, node.constant(alpha, made))


@converter("mul", reads="X Y")
def mul(node: PaddleNode, left: Expr, right: Expr) -> Expr:
    """A product of two tensors seen as matrices."""
    first, second = node.integer("x_num_col_dims", 1), node.integer("y_num_col_dims", 1)
    before, after = sizes_of(node, left), sizes_of(node, right)
    rows = reshaped(node, left, [multiplied(before[:first]), multiplied(before[first:])])
    columns = reshaped(node, right, [multiplied(after[:second]), multiplied(after[second:])])
    return reshaped(node, products(node, rows, columns, False, False), [*before[:first], *after[second:]])


@converter("fc", reads="Input W Bias")
def fully_connected(node: PaddleNode, data: Expr, weight: Expr, bias: Expr | None) -> Expr:
    """A product of rows and a weight (inputs, outputs), a bias, and perhaps ReLU."""
    lead = node.integer("in_num_col_dims", 1)
    sizes = sizes_of(node, data)
    rows = reshaped(node, data, [multiplied(sizes[:lead]), multiplied(sizes[lead:])])
    made = products(node, rows, weight, False, False)
    if bias is not None:
        made = relay.add(made, bias)
    made = reshaped(node, made, [*sizes[:lead], node.static_shape(weight)[1]])
    kind = node.text("activation_type", "")
    if kind not in ("", "relu"):
        raise node.fail(f"the activation {kind!r} is not supported")
    return relay.nn.relu(made) if kind else made


@converter("bmm", reads="X Y")
def bmm(node: PaddleNode, left: Expr, right: Expr) -> Expr:
    """Products of pairs of matrices."""
    return products(node, left, right, False, False)


@converter("mv", reads="X Vec")
def mv(node: PaddleNode, matrix: Expr, vector: Expr) -> Expr:
    """The product of a matrix and a vector."""
    return matrix_product(node, matrix, vector, False, False)


@converter("dot", reads="X Y")
def dot(node: PaddleNode, left: Expr, right: Expr) -> Expr:
    """Sums of products along the last axis."""
    rank = node.rank(left)
    old = node.declared("Out")
    keep = old is not None and len(old.shape) == rank
    return relay.sum(relay.multiply(left, right), axis=[rank - 1], keepdims=keep)


@converter("addmm", reads="Input X Y")
def addmm(node: PaddleNode, more: Expr, left: Expr, right: Expr) -> Expr:
    """A product times a number plus a matrix times another."""
    made = products(node, left, right, False, False)
    alpha, beta = node.real("Alpha", node.real("alpha", 1.0)), node.real("Beta", node.real("beta", 1.0))
    if alpha != 1.0:
        made = relay.multiply(made, node.constant(alpha, made))
    return relay.add(made, more if beta == 1.0 else relay.multiply(more, node.constant(beta, more)))


@converter("einsum", reads="Operands*")
def einsum(node: PaddleNode, operands: list[Expr]) -> Expr:
    """A sum of products by an equation."""
    return relay.einsum(operands, node.text("equation"))


@converter("bilinear_tensor_product", reads="X Y Weight Bias")
def bilinear(node: PaddleNode, left: Expr, right: Expr, weight: Expr, bias: Expr | None) -> Expr:
    """A bilinear form of pairs of rows for each output."""
    made = relay.einsum([left, weight, right], "bi,oij,bj->bo")
    return made if bias is None else relay.add(made, bias)
