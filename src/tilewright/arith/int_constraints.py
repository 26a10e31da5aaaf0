"""The input and output of the integer solvers: variables, their ranges, and relations between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from tilewright.arith.core import AnalyzerCore
from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, IntImm, PrimExpr, Range, Var
from tilewright.support.node import Children, Node, node


@node
class IntGroupBounds(Node):
    """Bounds of ``coef * variable``: not below any ``lower``, not above any ``upper``, equal to each ``equal``."""

    coef: PrimExpr
    lower: Children[PrimExpr]
    equal: Children[PrimExpr]
    upper: Children[PrimExpr]

    def __init__(
        self, coef: ExprLike, lower: Sequence[ExprLike], equal: Sequence[ExprLike], upper: Sequence[ExprLike]
    ) -> None:
        self.coef = operators.as_expr(coef)
        self.lower = tuple([operators.as_expr(bound) for bound in lower])
        self.equal = tuple([operators.as_expr(bound) for bound in equal])
        self.upper = tuple([operators.as_expr(bound) for bound in upper])

    @staticmethod
    def from_range(rng: Range) -> IntGroupBounds:
        """The bounds of a variable that runs over a range."""
        one = operators.const(1, rng.min.dtype)
        if isinstance(rng.extent, IntImm) and rng.extent.value == 1:
            return IntGroupBounds(one, [], [rng.min], [])
        last = operators.subtract(operators.add(rng.min, rng.extent), 1)
        return IntGroupBounds(one, [rng.min], [], [last])

    def find_best_range(
        self, ranges: Mapping[Var, Range] | None = None, analyzer: AnalyzerCore | None = None
    ) -> Range | None:
        """The shortest range of the variable between a lower and an upper bound, by what is known.

        None if a side is open.
        """
        if analyzer is None:
            analyzer = AnalyzerCore()
            for variable, known in (ranges or {}).items():
                analyzer.bind(variable, known)
        best: tuple[float, PrimExpr, PrimExpr] | None = None
        for lower in (*self.equal, *self.lower):
            first = analyzer.simplify(_rounded_up(lower, self.coef))
            for upper in (*self.equal, *self.upper):
                last = analyzer.simplify(operators.floordiv(upper, self.coef))
                extent = analyzer.simplify(operators.add(operators.subtract(last, first), 1))
                length = analyzer.const_int_bound(extent).pair()[1]
                if best is None or length <= best[0]:
                    best = length, first, extent
        if best is None:
            return None
        # The longest that it gets: how it depends on other variables is left to the relations.
        longest = IntImm(best[2].dtype, int(best[0])) if best[0] < inf else best[2]
        return Range.from_min_extent(best[1], longest)


def _rounded_up(value: PrimExpr, divisor: PrimExpr) -> PrimExpr:
    """The quotient by a positive divisor, rounded up."""
    if isinstance(divisor, IntImm) and divisor.value == 1:
        return value
    return operators.floordiv(operators.subtract(operators.add(value, divisor), 1), divisor)


@node
class IntConstraints(Node):
    """Variables, the ranges of some of them, and relations that hold between them."""

    variables: tuple[Var, ...]
    ranges: Mapping[Var, Range]
    relations: Children[PrimExpr]

    def __init__(
        self, variables: Sequence[Var], ranges: Mapping[Var, Range] | None, relations: Sequence[ExprLike]
    ) -> None:
        self.variables = tuple(variables)
        self.ranges = dict(ranges or {})
        self.relations = tuple([operators.as_expr(relation) for relation in relations])


@node
class IntConstraintsTransform(Node):
    """Two systems with the same solutions, and the maps between their variables."""

    src: IntConstraints
    dst: IntConstraints
    src_to_dst: Mapping[Var, PrimExpr]
    dst_to_src: Mapping[Var, PrimExpr]

    def __init__(
        self,
        src: IntConstraints,
        dst: IntConstraints,
        src_to_dst: Mapping[Var, PrimExpr],
        dst_to_src: Mapping[Var, PrimExpr],
    ) -> None:
        self.src = src
        self.dst = dst
        self.src_to_dst = dict(src_to_dst)
        self.dst_to_src = dict(dst_to_src)
