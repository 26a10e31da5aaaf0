"""Inverses, determinants, factors and solutions of small matrices."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.frontend.common import linear_algebra
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode
from tilewright.relay.frontend.common.sizes import reshaped, sizes_of
from tilewright.relay.frontend.tensorflow.registry import converter


def _adjoint(node: GraphNode, data: Expr) -> Expr:
    rank = node.rank(data)
    return relay.transpose(data, [*range(rank - 2), rank - 1, rank - 2])


def _stack(node: GraphNode, data: Expr) -> Expr:
    rows, columns = node.static_shape(data)[-2:]
    return relay.reshape(data, (-1, rows, columns))


@converter("MatrixInverse", "BatchMatrixInverse")
def matrix_inverse(node: GraphNode, data: Expr) -> Expr:
    """The inverses of matrices."""
    given = _adjoint(node, data) if node.attr("adjoint", False) else data
    return linear_algebra.inverse(node, given)[0]


@converter("MatrixDeterminant", "BatchMatrixDeterminant")
def matrix_determinant(node: GraphNode, data: Expr) -> Expr:
    """The determinants of matrices."""
    return linear_algebra.determinants(node, data)


@converter("LogMatrixDeterminant")
def log_matrix_determinant(node: GraphNode, data: Expr) -> list[Expr]:
    """The signs of determinants, and the logarithms of their magnitudes."""
    return list(linear_algebra.signs_and_logarithms(node, data))


@converter("Cholesky")
def cholesky(node: GraphNode, data: Expr) -> Expr:
    """The lower triangular factors of symmetric matrices."""
    found = linear_algebra.cholesky(node, linear_algebra.square(node, data))[0]
    return reshaped(node, found, sizes_of(node, data))


@converter("MatrixSolve")
def matrix_solve(node: GraphNode, matrix: Expr, right: Expr) -> Expr:
    """The solutions of systems of equations."""
    given = _adjoint(node, matrix) if node.attr("adjoint", False) else matrix
    found = linear_algebra.solve(node, linear_algebra.square(node, given), _stack(node, right))[0]
    return reshaped(node, found, sizes_of(node, right))


@converter("MatrixTriangularSolve")
def matrix_triangular_solve(node: GraphNode, matrix: Expr, right: Expr) -> Expr:
    """The solutions of systems of equations with triangular matrices."""
    if node.shape(matrix)[:-2] != node.shape(right)[:-2]:
        raise node.fail("batches that broadcast are not supported")
    is_lower = bool(node.attr("lower", True))
    if node.attr("adjoint", False):
        matrix, is_lower = _adjoint(node, matrix), not is_lower
    solve = linear_algebra.solve_lower if is_lower else linear_algebra.solve_upper
    found = solve(node, linear_algebra.square(node, matrix), _stack(node, right))
    return reshaped(node, found, sizes_of(node, right))
