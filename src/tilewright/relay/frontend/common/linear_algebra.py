"""Determinants, linear systems and Cholesky factors of small matrices, written out as Relay: a step for each row.

Everything here takes stacks of matrices (batch, rows, columns) whose rows and columns are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from tilewright import relay
from tilewright.relay.expr import ExprWithOp as Expr
from tilewright.relay.expr import const
from tilewright.relay.frontend.common.node import ModelNode
from tilewright.relay.frontend.common.sizes import reshaped, sizes_of

MOST_ROWS: Final = 64
"""Of a matrix: each is a step of the elimination, written out."""


@dataclass(frozen=True)
class Elimination:
    """A system of equations in which each unknown is only in its own row and those above."""

    pivots: list[Expr]
    """What each unknown's row was divided by, with the sign that exchanging rows gives the determinant: (batch, 1)."""
    rows: list[Expr]
    """The rest of each divided row: the coefficients of the later unknowns, and the right sides: (batch, 1, rest)."""


def square(node: ModelNode, data: Expr) -> Expr:
    """Square matrices as one stack."""
    *_, rows, columns = node.static_shape(data)
    if rows != columns:
        raise node.fail(f"a matrix of {rows} by {columns} is not square")
    if not rows:
        raise node.fail("matrices without elements are not supported")
    if rows > MOST_ROWS:
        raise node.fail(f"the matrix has {rows} rows; the limit is {MOST_ROWS}")
    return relay.reshape(data, (-1, rows, rows))


def eliminate(node: ModelNode, matrix: Expr, right: Expr | None = None) -> Elimination:
    """Gauss's elimination, with the largest element of a column as its pivot. Without right sides a column of zeros
    leaves the rest as it is, and its pivot is zero."""
    rows = node.static_shape(matrix)[-1]
    width = rows if right is None else rows + node.static_shape(right)[-1]
    dtype = node.dtype(matrix)
    zero, one = const(0, dtype), const(1, dtype)
    rest = matrix if right is None else relay.concatenate([matrix, right], 2)
    found = Elimination([], [])
    for left in range(rows, 0, -1):
        first, columns = const(0, "int32"), width - (rows - left)
        column = relay.squeeze(_part(rest, 0, left, 0, 1), [2])
        place = relay.argmax(relay.abs(column), axis=1, keepdims=True)
        pivot = relay.gather(column, 1, place)
        is_exchanged = relay.not_equal(place, first)
        found.pivots.append(relay.where(is_exchanged, relay.negative(pivot), pivot))
        line = relay.arange(first, const(left, "int32"), const(1, "int32"), "int32")
        order = relay.where(
            relay.equal(line, first), place, relay.where(relay.equal(line, place), first, line)
        )
        wide = relay.broadcast_to_like(relay.expand_dims(order, 2), relay.cast(rest, "int32"))
        rest = relay.gather(rest, 1, wide)
        divisor = pivot if right is not None else relay.where(relay.equal(pivot, zero), one, pivot)
        head = relay.divide(_part(rest, 0, 1, 1, columns), relay.expand_dims(divisor, 2))
        found.rows.append(head)
        if left > 1:
            below = _part(rest, 1, left, 0, 1)
            rest = relay.subtract(_part(rest, 1, left, 1, columns), relay.multiply(below, head))
    return found


def determinants(node: ModelNode, data: Expr) -> Expr:
    """The product of the pivots, in the shape of the batches."""
    *batch, _, _ = sizes_of(node, data)
    total, *others = eliminate(node, square(node, data)).pivots
    for pivot in others:
        total = relay.multiply(total, pivot)
    return reshaped(node, total, batch)


def signs_and_logarithms(node: ModelNode, data: Expr) -> tuple[Expr, Expr]:
    """The signs of determinants, and the logarithms of their magnitudes, which may be too large to be numbers."""
    *batch, _, _ = sizes_of(node, data)
    pivots = relay.concatenate(eliminate(node, square(node, data)).pivots, 1)
    sign = relay.prod(relay.sign(pivots), [1])
    logarithm = relay.sum(relay.log(relay.abs(pivots)), [1])
    return reshaped(node, sign, batch), reshaped(node, logarithm, batch)


def solve(node: ModelNode, matrix: Expr, right: Expr) -> tuple[Expr, Expr]:
    """``x`` of ``matrix @ x == right``, as stacks, and for each matrix the number of the first pivot that is zero,
    counted from one; 0 where there is none."""
    found = eliminate(node, matrix, right)
    columns = node.static_shape(right)[-1]
    solved: list[Expr] = []
    for row in reversed(found.rows):
        later = len(solved)
        value = _part(row, 0, 1, later, later + columns)
        if solved:
            known = solved[0] if later == 1 else relay.concatenate(list(solved), 1)
            value = relay.subtract(value, _product(_part(row, 0, 1, 0, later), known))
        solved.insert(0, value)
    return _stacked(solved, 1), first_failure(node, found.pivots)


def inverse(node: ModelNode, data: Expr) -> tuple[Expr, Expr]:
    """The inverses, and the first pivots that are zero; see ``solve``."""
    sizes = sizes_of(node, data)
    matrix = square(node, data)
    rows = node.static_shape(data)[-1]
    line = relay.arange(const(0, "int32"), const(rows, "int32"), const(1, "int32"), "int32")
    diagonal = relay.equal(relay.expand_dims(line, 0), relay.expand_dims(line, 1))
    unit = relay.broadcast_to_like(relay.cast(relay.expand_dims(diagonal, 0), node.dtype(data)), matrix)
    made, failed = solve(node, matrix, unit)
    return reshaped(node, made, sizes), reshaped(node, failed, sizes[:-2])


def first_failure(
    node: ModelNode, pivots: Sequence[Expr], is_failure: Callable[[Expr, Expr], Expr] = relay.equal
) -> Expr:
    """The number of the first pivot that compares so with zero, counted from one; 0 where there is none."""
    joined = _stacked(list(pivots), 1)
    failed = is_failure(joined, const(0, node.dtype(joined)))
    number = relay.add(relay.argmax(relay.cast(failed, "int32"), axis=1), const(1, "int32"))
    return relay.where(relay.any(failed, 1), number, const(0, "int32"))


def solve_lower(node: ModelNode, matrix: Expr, right: Expr, unit: bool = False) -> Expr:
    """``x`` of ``matrix @ x == right``, of what is on and below the diagonal; with ``unit`` only below it, and ones on
    it."""
    rows = node.static_shape(matrix)[-1]
    solved: list[Expr] = []
    for number in range(rows):
        value = _part(right, number, number + 1)
        if solved:
            value = relay.subtract(
                value, _product(_part(matrix, number, number + 1, 0, number), _stacked(list(solved), 1))
            )
        if not unit:
            value = relay.divide(value, _part(matrix, number, number + 1, number, number + 1))
        solved.append(value)
    return _stacked(solved, 1)


def solve_upper(node: ModelNode, matrix: Expr, right: Expr, unit: bool = False) -> Expr:
    """The same of what is on and above the diagonal."""
    turned = relay.reverse(relay.reverse(matrix, 1), 2)
    return relay.reverse(solve_lower(node, turned, relay.reverse(right, 1), unit), 1)


def cholesky(node: ModelNode, data: Expr) -> tuple[Expr, Expr]:
    """The lower factors of symmetric matrices, as stacks, and the first pivots that are not positive, counted from one;
    0 where there is none."""
    rows = node.static_shape(data)[-1]
    rest = data
    columns: list[Expr] = []
    pivots: list[Expr] = []
    for left in range(rows, 0, -1):
        pivot = _part(rest, 0, 1, 0, 1)
        pivots.append(relay.squeeze(pivot, [2]))
        column = relay.divide(_part(rest, 0, left, 0, 1), relay.sqrt(pivot))
        columns.append(relay.nn.pad(column, ((0, 0), (rows - left, 0), (0, 0))))
        if left > 1:
            below = _part(column, 1, left)
            outer = relay.multiply(below, relay.transpose(below, (0, 2, 1)))
            rest = relay.subtract(_part(rest, 1, left, 1, left), outer)
    return _stacked(columns, 2), first_failure(node, pivots, relay.less_equal)


def _part(data: Expr, top: int, bottom: int, left: int = 0, right: int | None = None) -> Expr:
    """Rows, and columns, of every matrix."""
    if right is None:
        return relay.strided_slice(data, [top], [bottom], axes=[1])
    return relay.strided_slice(data, [top, left], [bottom, right], axes=[1, 2])


def _product(row: Expr, matrix: Expr) -> Expr:
    """(batch, 1, n) times (batch, n, columns)."""
    return relay.nn.batch_matmul(row, matrix, transpose_b=False)


def _stacked(parts: list[Expr], axis: int) -> Expr:
    return parts[0] if len(parts) == 1 else relay.concatenate(parts, axis)
