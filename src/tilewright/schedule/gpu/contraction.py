"""Sums of products: which axes belong to which factor.

Of the data axes, those that only one factor depends on are its own; those of both are batches. So a matrix product, a
batched one and a convolution (whose second factor is read at an offset that depends on the window) are the same case.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.ir.expr import Add, Cast, IntImm, IterVar, Mul, PrimExpr, ProducerLoad, Reduce, Var
from tilewright.ir.functor import free_vars, post_order
from tilewright.schedule.cpu.access import constant_extent, extent_of
from tilewright.schedule.cpu.graph import MaterializedStage


@dataclass(frozen=True, eq=False)
class Contraction:
    """The factors of a sum of products, and the positions of the data axes of each and of both.

    ``columns`` are the axes of the second factor, the one that the innermost axis of the result belongs to.
    """

    first: PrimExpr
    second: PrimExpr
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    batches: tuple[int, ...]

    def counts(self, axes: tuple[IterVar, ...]) -> tuple[int, int, int]:
        """The number of rows, columns and batches."""
        rows, columns, batches = (
            prod(extent_of(axes[position]) for position in positions)
            for positions in (self.rows, self.columns, self.batches)
        )
        return rows, columns, batches


def contraction_of(anchor: MaterializedStage) -> Contraction | None:
    """The sum of products that a reduction is, if it is one with known extents."""
    operation = anchor.compute
    if len(operation.body) != 1 or not isinstance(operation.body[0], Reduce):
        return None
    reduce = operation.body[0]
    if not _is_sum(reduce) or any(constant_extent(axis) is None for axis in operation.reduce_axis):
        return None
    factors = _factors(reduce.source[0])
    if factors is None:
        return None
    axes = operation.axes
    long = [number for number, axis in enumerate(axes) if constant_extent(axis) != 1]
    first, second = (_positions(factor, axes) for factor in factors)
    if not long or any(constant_extent(axes[number]) is None for number in long):
        return None
    if long[-1] in first and long[-1] not in second:
        factors, first, second = (factors[1], factors[0]), second, first
    rows = tuple(number for number in long if number in first and number not in second)
    columns = tuple(number for number in long if number in second and number not in first)
    if not rows or not columns:
        return None
    batches = tuple(number for number in range(len(axes)) if number not in rows and number not in columns)
    return Contraction(factors[0], factors[1], rows, columns, batches)


def _is_sum(reduce: Reduce) -> bool:
    combiner = reduce.combiner
    result = combiner.result[0]
    plain = isinstance(result, Add) and {id(result.a), id(result.b)} == {
        id(combiner.lhs[0]),
        id(combiner.rhs[0]),
    }
    always = isinstance(reduce.condition, IntImm) and bool(reduce.condition.value)
    return len(combiner.result) == 1 and plain and always and not reduce.init


def _factors(source: PrimExpr) -> tuple[PrimExpr, PrimExpr] | None:
    """The two factors of a product, each with a load in it."""
    widened = source.value if isinstance(source, Cast) else source
    if not isinstance(widened, Mul) or widened is not source:
        return None
    factors = widened.a, widened.b
    if all(any(isinstance(part, ProducerLoad) for part in post_order(factor)) for factor in factors):
        return factors
    return None


def _positions(factor: PrimExpr, axes: tuple[IterVar, ...]) -> set[int]:
    found: set[Var] = set(free_vars(factor))
    return {number for number, axis in enumerate(axes) if axis.var in found}
