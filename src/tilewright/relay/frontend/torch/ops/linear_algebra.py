"""Determinants, inverses, linear systems and Cholesky factors of small matrices."""

from __future__ import annotations

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.frontend.common import linear_algebra
from tilewright.relay.frontend.common.sizes import Size, broadcast_to, reshaped, sizes_of
from tilewright.relay.frontend.torch.node import TorchNode
from tilewright.relay.frontend.torch.ops.creation import tril
from tilewright.relay.frontend.torch.ops.matrices import common_sizes
from tilewright.relay.frontend.torch.registry import converter


@converter("aten::det", "aten::linalg_det")
def determinant(node: TorchNode, input: Expr | None = None, A: Expr | None = None) -> Expr:
    """The determinants."""
    return linear_algebra.determinants(node, _either(input, A))


@converter("aten::_linalg_det")
def determinant_with_factors(node: TorchNode, A: Expr) -> list[Expr]:
    """The determinants; the factors that PyTorch keeps for gradients are not there."""
    return [linear_algebra.determinants(node, A)]


@converter("aten::slogdet", "aten::linalg_slogdet", "aten::_linalg_slogdet")
def sign_and_logarithm(node: TorchNode, input: Expr | None = None, A: Expr | None = None) -> list[Expr]:
    """The signs of determinants, and the logarithms of their magnitudes."""
    return list(linear_algebra.signs_and_logarithms(node, _either(input, A)))


@converter("aten::logdet")
def logarithm_of_determinant(node: TorchNode, input: Expr) -> Expr:
    """The logarithms of determinants; not a number where they are negative."""
    sign, logarithm = linear_algebra.signs_and_logarithms(node, input)
    dtype = node.dtype(input)
    zero = node.constant(0, dtype)
    return relay.where(relay.less(sign, zero), node.constant(float("nan"), dtype), logarithm)


@converter("aten::inverse", "aten::linalg_inv")
def inverse(node: TorchNode, input: Expr | None = None, A: Expr | None = None) -> Expr:
    """The inverses."""
    return linear_algebra.inverse(node, _either(input, A))[0]


@converter("aten::linalg_inv_ex")
def inverse_with_failures(node: TorchNode, A: Expr, check_errors: bool = False) -> list[Expr]:
    """The inverses, and where elimination found a zero."""
    return list(linear_algebra.inverse(node, A))


@converter("aten::linalg_solve")
def solve(node: TorchNode, A: Expr, B: Expr, left: bool = True) -> Expr:
    """Solutions of A X = B, or of X A = B."""
    return solve_with_failures(node, A, B, left)[0]


@converter("aten::linalg_solve_ex")
def solve_with_failures(
    node: TorchNode, A: Expr, B: Expr, left: bool = True, check_errors: bool = False
) -> list[Expr]:
    """Solutions, and where elimination found a zero."""
    # B is a stack of vectors where it has the shape of A without its last dimension.
    is_vector = node.rank(B) == 1 or node.shape(B) == node.shape(A)[:-1]
    if is_vector:
        B = relay.expand_dims(B, node.rank(B))
    given = (A, B) if left or is_vector else (_turned(node, A), _turned(node, B))
    matrices, right, sizes = _stacks(node, *given)
    made, failed = linear_algebra.solve(node, matrices, right)
    made = reshaped(node, made, sizes)
    failed = reshaped(node, failed, sizes[:-2])
    if is_vector:
        return [reshaped(node, made, sizes[:-1]), failed]
    return [made if left else _turned(node, made), failed]


@converter("aten::linalg_solve_triangular")
def solve_triangular(
    node: TorchNode, input: Expr, B: Expr, upper: bool, left: bool = True, unitriangular: bool = False
) -> Expr:
    """Solutions of systems whose matrices have one triangle."""
    if not left:
        turned = solve_triangular(
            node, _turned(node, input), _turned(node, B), not upper, unitriangular=unitriangular
        )
        return _turned(node, turned)
    matrices, right, sizes = _stacks(node, input, B)
    chosen = linear_algebra.solve_upper if upper else linear_algebra.solve_lower
    return reshaped(node, chosen(node, matrices, right, unitriangular), sizes)


@converter("aten::triangular_solve")
def triangular_solve(
    node: TorchNode,
    input: Expr,
    A: Expr,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
) -> list[Expr]:
    """The same, the right sides first, and the matrices once more."""
    given, is_upper = (_turned(node, A), not upper) if transpose else (A, upper)
    return [solve_triangular(node, given, input, is_upper, unitriangular=unitriangular), A]


@converter("aten::cholesky", "aten::linalg_cholesky")
def cholesky(node: TorchNode, input: Expr, upper: bool = False) -> Expr:
    """The factors of symmetric matrices."""
    return cholesky_with_failures(node, input, upper)[0]


@converter("aten::linalg_cholesky_ex")
def cholesky_with_failures(
    node: TorchNode, input: Expr, upper: bool = False, check_errors: bool = False
) -> list[Expr]:
    """The factors, and where a pivot was not positive."""
    sizes = sizes_of(node, input)
    made, failed = linear_algebra.cholesky(node, linear_algebra.square(node, input))
    factor = reshaped(node, made, sizes)
    return [_turned(node, factor) if upper else factor, reshaped(node, failed, sizes[:-2])]


@converter("aten::cholesky_solve")
def cholesky_solve(node: TorchNode, input: Expr, input2: Expr, upper: bool = False) -> Expr:
    """Solutions of the systems that these are the factors of."""
    lower = _turned(node, input2) if upper else input2
    matrices, right, sizes = _stacks(node, lower, input)
    half = linear_algebra.solve_lower(node, matrices, right)
    whole = linear_algebra.solve_upper(node, relay.transpose(matrices, (0, 2, 1)), half)
    return reshaped(node, whole, sizes)


@converter("aten::cholesky_inverse")
def cholesky_inverse(node: TorchNode, input: Expr, upper: bool = False) -> Expr:
    """The inverses of the matrices that these are the factors of."""
    factor = _turned(node, input) if upper else input
    rows = node.static_shape(input)[-1]
    stack = linear_algebra.square(node, tril(node, factor))
    product = relay.nn.batch_matmul(stack, stack)
    return linear_algebra.inverse(node, reshaped(node, product, [*sizes_of(node, input)[:-2], rows, rows]))[0]


def _either(one: Expr | None, other: Expr | None) -> Expr:
    """The matrices, which are called differently by two names of an operator."""
    found = one if one is not None else other
    assert found is not None
    return found


def _turned(node: TorchNode, data: Expr) -> Expr:
    """Matrices transposed."""
    rank = node.rank(data)
    return relay.transpose(data, [*range(rank - 2), rank - 1, rank - 2])


def _stacks(node: TorchNode, matrices: Expr, right: Expr) -> tuple[Expr, Expr, list[Size]]:
    """Square matrices and right sides with common batches, each as one stack, and the sizes of the solution."""
    lead = common_sizes(node, sizes_of(node, matrices)[:-2], sizes_of(node, right)[:-2])
    rows, columns = node.static_shape(right)[-2:]
    wide = broadcast_to(node, matrices, [*lead, *sizes_of(node, matrices)[-2:]])
    sides = broadcast_to(node, right, [*lead, rows, columns])
    return (
        linear_algebra.square(node, wide),
        relay.reshape(sides, (-1, rows, columns)),
        [*lead, rows, columns],
    )
