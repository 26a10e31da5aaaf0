"""Sets of integers: intervals whose ends are expressions.

``pos_inf()`` and ``neg_inf()`` represent missing ends. An interval is known to be empty only if it runs from positive
to negative infinity; whether another one is empty may depend on unknown values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilewright.arith.core import AnalyzerCore, knowing_nothing
from tilewright.arith.iter_detect import detect_iter_map
from tilewright.arith.pool import Expr
from tilewright.ir import operators
from tilewright.ir.expr import Broadcast, ExprLike, PrimExpr, Ramp, Range, Var
from tilewright.support.errors import TilewrightError
from tilewright.support.node import Child, Node, node

POS_INF = Var("pos_inf", "handle")
NEG_INF = Var("neg_inf", "handle")


def pos_inf() -> Var:
    """The symbol of positive infinity."""
    return POS_INF


def neg_inf() -> Var:
    """The symbol of negative infinity."""
    return NEG_INF


class IntSet(Node):
    """Base of sets of integers."""

    __slots__ = ()

    def is_nothing(self) -> bool:
        """True if the set is known to be empty."""
        return False

    def is_everything(self) -> bool:
        """True if nothing is known of the set."""
        return False

    @staticmethod
    def vector(vec: PrimExpr) -> IntSet:
        """The set of the lanes of a vector."""
        if isinstance(vec, Broadcast):
            return IntervalSet(vec.value, vec.value)
        if isinstance(vec, Ramp):
            last = operators.add(vec.base, operators.multiply(vec.stride, vec.lanes - 1))
            return union_sets([IntervalSet(vec.base, vec.base), IntervalSet(last, last)])
        if vec.dtype.lanes > 1:
            raise TilewrightError(
                f"the lanes of a {type(vec).__name__} are not known; give a Ramp or a Broadcast"
            )
        return IntervalSet(vec, vec)

    @staticmethod
    def single_point(point: ExprLike) -> IntervalSet:
        """The set of one value."""
        return IntervalSet(point, point)

    @staticmethod
    def interval(min_value: ExprLike, max_value: ExprLike) -> IntervalSet:
        """The values from one to another, ends included."""
        return IntervalSet(min_value, max_value)

    @staticmethod
    def from_range(given: Range) -> IntervalSet:
        """The values of a range."""
        last = operators.subtract(operators.add(given.min, given.extent), 1)
        return IntervalSet(given.min, last)

    @staticmethod
    def everything() -> IntervalSet:
        """All integers."""
        return IntervalSet(NEG_INF, POS_INF)

    @staticmethod
    def nothing() -> IntervalSet:
        """No integer."""
        return IntervalSet(POS_INF, NEG_INF)


@node
class IntervalSet(IntSet):
    """The integers from ``min_value`` to ``max_value``, ends included."""

    min_value: Child[PrimExpr]
    max_value: Child[PrimExpr]

    def __init__(self, min_value: ExprLike, max_value: ExprLike) -> None:
        self.min_value = operators.as_expr(min_value)
        self.max_value = operators.as_expr(max_value)

    def is_nothing(self) -> bool:
        return self.min_value is POS_INF or self.max_value is NEG_INF

    def is_everything(self) -> bool:
        return self.min_value is NEG_INF and self.max_value is POS_INF

    @property
    def has_lower_bound(self) -> bool:
        """True if there is a least value."""
        return self.min_value is not NEG_INF and self.min_value is not POS_INF

    @property
    def has_upper_bound(self) -> bool:
        """True if there is a greatest value."""
        return self.max_value is not NEG_INF and self.max_value is not POS_INF

    @property
    def is_bounded(self) -> bool:
        """True if both ends exist."""
        return self.has_lower_bound and self.has_upper_bound

    @property
    def is_single_point(self) -> bool:
        """True if both ends are one expression."""
        return self.is_bounded and bool(self.min_value == self.max_value)

    def point_value(self) -> PrimExpr:
        """The only value."""
        if not self.is_single_point:
            raise TilewrightError(f"{self} is not one point")
        return self.min_value

    def cover_range(self, default: Range, analyzer: AnalyzerCore | None = None) -> Range:
        """The range with the same values; the default where an end does not exist."""
        if not self.is_bounded:
            return default
        if self.is_single_point:
            return Range.from_min_extent(self.min_value, operators.const(1, self.min_value.dtype))
        length = operators.add(operators.subtract(self.max_value, self.min_value), 1)
        return Range.from_min_extent(self.min_value, (analyzer or knowing_nothing()).simplify(length))

    def union(self, other: IntSet, analyzer: AnalyzerCore | None = None) -> IntervalSet:
        """The least interval that contains both."""
        return union_sets([self, other], analyzer)

    def intersect(self, other: IntSet, analyzer: AnalyzerCore | None = None) -> IntervalSet:
        """The values that are in both."""
        return intersect([self, other], analyzer)

    def __repr__(self) -> str:
        return f"IntervalSet[{self.min_value}, {self.max_value}]"


def as_interval(given: IntSet | Range | ExprLike) -> IntervalSet:
    """The interval that a set, a range or a single expression stands for."""
    if isinstance(given, IntervalSet):
        return given
    if isinstance(given, Range):
        return IntSet.from_range(given)
    return IntSet.single_point(given)


def lesser(a: Expr, b: Expr) -> Expr:
    """The minimum of two ends, which may be infinite."""
    if a is NEG_INF or b is POS_INF:
        return a
    if b is NEG_INF or a is POS_INF:
        return b
    return operators.minimum(a, b)


def greater(a: Expr, b: Expr) -> Expr:
    """The maximum of two ends, which may be infinite."""
    if a is POS_INF or b is NEG_INF:
        return a
    if b is POS_INF or a is NEG_INF:
        return b
    return operators.maximum(a, b)


def _simplified(analyzer: AnalyzerCore, end: Expr) -> Expr:
    return end if end is POS_INF or end is NEG_INF else analyzer.simplify(end)


def union_sets(sets: Iterable[IntSet], analyzer: AnalyzerCore | None = None) -> IntervalSet:
    """The least interval that contains all the sets."""
    analyzer = analyzer or knowing_nothing()
    low: Expr = POS_INF
    high: Expr = NEG_INF
    for given in sets:
        interval = as_interval(given)
        if interval.is_nothing():
            continue
        low = _simplified(analyzer, lesser(low, interval.min_value))
        high = _simplified(analyzer, greater(high, interval.max_value))
    return IntervalSet(low, high)


def intersect(sets: Iterable[IntSet], analyzer: AnalyzerCore | None = None) -> IntervalSet:
    """The values that are in all the sets; nothing where that can be proved."""
    analyzer = analyzer or knowing_nothing()
    low: Expr = NEG_INF
    high: Expr = POS_INF
    for given in sets:
        interval = as_interval(given)
        low = _simplified(analyzer, greater(low, interval.min_value))
        high = _simplified(analyzer, lesser(high, interval.max_value))
    made = IntervalSet(low, high)
    if made.is_bounded and analyzer.can_prove(operators.less(high, low)):
        return IntSet.nothing()
    return made


def union_lower_bound(sets: Sequence[IntSet], analyzer: AnalyzerCore | None = None) -> IntervalSet:
    """An interval each value of which is in one of the sets.

    Sets that leave a gap to the ones before are passed over.
    """
    analyzer = analyzer or knowing_nothing()
    result: IntervalSet | None = None
    for given in sets:
        interval = as_interval(given)
        if interval.is_nothing():
            continue
        if result is None:
            result = interval
        elif _touches(analyzer, interval, result) and _touches(analyzer, result, interval):
            result = union_sets([result, interval], analyzer)
    return result if result is not None else IntSet.nothing()


def _touches(analyzer: AnalyzerCore, a: IntervalSet, b: IntervalSet) -> bool:
    """True if ``a`` is known to start at most one after ``b`` ends."""
    if a.min_value is NEG_INF or b.max_value is POS_INF:
        return True
    return analyzer.can_prove(operators.less_equal(a.min_value, operators.add(b.max_value, 1)))


def estimate_region_lower_bound(
    region: Sequence[Range], var_dom: Mapping[Any, Range], predicate: ExprLike = True
) -> list[IntervalSet] | None:
    """For each dimension an interval every value of which is accessed when the variables run over their ranges.

    None if the region is not an iterator map, or it leaves gaps.
    """
    found = detect_iter_map([span.min for span in region], var_dom, predicate)
    if len(found) != len(region):
        return None
    analyzer = knowing_nothing()
    made: list[IntervalSet] = []
    for total, span in zip(found, region, strict=True):
        length: Expr = span.extent
        if total.args:
            split = total.args[0]
            # Steps longer than what each step accesses leave gaps.
            if not analyzer.can_prove(operators.greater_equal(span.extent, split.scale)):
                return None
            steps = operators.multiply(operators.subtract(split.extent, 1), split.scale)
            length = operators.add(steps, span.extent)
        last = operators.subtract(operators.add(total.base, length), 1)
        made.append(IntervalSet(analyzer.simplify(total.base), analyzer.simplify(last)))
    return made
