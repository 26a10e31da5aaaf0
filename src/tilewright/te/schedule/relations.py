"""How the axes of a stage derive from one another, and what that means for ranges, indices and sets.

A stage starts from the root axes of its operation. Each relation consumes axes and produces new ones; the remaining
axes are the leaves, and they become loops. Information flows both ways: ranges go down from the roots to the leaves,
indices and sets of values go up from the leaves to the roots.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith import Analyzer, IntervalSet, eval_int_set
from tilewright.ir import operators
from tilewright.ir.expr import IntImm, IterVar, PrimExpr, Range, Var, is_const
from tilewright.support.errors import LoweringError
from tilewright.support.node import Node, node

Ranges = dict[IterVar, Range]
Values = dict[IterVar, PrimExpr]
Sets = dict[IterVar, IntervalSet]


class IterVarRelation(Node):
    """Base of relations."""

    __slots__ = ()


@node
class Split(IterVarRelation):
    """``parent`` into ``outer`` and ``inner``: by the extent of the inner, or by the number of parts.

    ``exact``: the inner one has the extent that was asked for even where the parent is shorter.
    """

    parent: IterVar
    outer: IterVar
    inner: IterVar
    factor: PrimExpr | None
    nparts: PrimExpr | None
    exact: bool = False


@node
class Fuse(IterVarRelation):
    """``outer`` and ``inner`` into one."""

    outer: IterVar
    inner: IterVar
    fused: IterVar


@node
class Rebase(IterVarRelation):
    """``parent`` moved so that it starts at zero."""

    parent: IterVar
    rebased: IterVar


@node
class Singleton(IterVarRelation):
    """An axis with one iteration, out of nothing."""

    iter: IterVar


def _ceil_div(a: PrimExpr, b: PrimExpr) -> PrimExpr:
    return operators.floordiv(operators.add(a, operators.subtract(b, 1)), b)


def _zero_based(extent: PrimExpr, analyzer: Analyzer) -> Range:
    return Range.from_min_extent(operators.const(0, extent.dtype), analyzer.simplify(extent))


def _inner_extent(parent: PrimExpr, factor: PrimExpr, keep: bool) -> PrimExpr:
    """A factor larger than what it splits shrinks to it; one that an intrinsic was fitted to does not."""
    if not keep and isinstance(parent, IntImm) and isinstance(factor, IntImm) and parent.value < factor.value:
        return parent if parent.value > 0 else operators.const(1, parent.dtype)
    return operators.cast(parent.dtype, factor)


def pass_down_ranges(
    relations: Sequence[IterVarRelation],
    ranges: Ranges,
    analyzer: Analyzer,
    kept: frozenset[IterVar] = frozenset(),
    allow_missing: bool = False,
) -> None:
    """The ranges of all axes from those of the roots. ``kept`` axes keep the extent that the split requested."""
    for relation in relations:
        if isinstance(relation, Split):
            if relation.parent not in ranges:
                _require(allow_missing, relation.parent)
                continue
            extent = ranges[relation.parent].extent
            if relation.factor is not None:
                inner = _inner_extent(extent, relation.factor, relation.exact or relation.inner in kept)
                outer = _ceil_div(extent, inner)
            else:
                assert relation.nparts is not None
                outer = _inner_extent(extent, relation.nparts, relation.outer in kept)
                inner = _ceil_div(extent, outer)
            ranges[relation.outer] = _zero_based(outer, analyzer)
            ranges[relation.inner] = _zero_based(inner, analyzer)
        elif isinstance(relation, Fuse):
            if relation.outer not in ranges or relation.inner not in ranges:
                _require(allow_missing, relation.outer)
                continue
            total = operators.multiply(ranges[relation.outer].extent, ranges[relation.inner].extent)
            ranges[relation.fused] = _zero_based(total, analyzer)
        elif isinstance(relation, Rebase):
            if relation.parent not in ranges:
                _require(allow_missing, relation.parent)
                continue
            ranges[relation.rebased] = _zero_based(ranges[relation.parent].extent, analyzer)
        elif isinstance(relation, Singleton):
            ranges[relation.iter] = Range(0, 1)


def _require(allow_missing: bool, axis: IterVar) -> None:
    if not allow_missing:
        raise LoweringError(f"the range of axis {axis.var.name} is not known")


def pass_up_values(
    relations: Sequence[IterVarRelation], ranges: Ranges, values: Values, allow_missing: bool = False
) -> None:
    """The values of all axes from those of the leaves."""
    for relation in reversed(relations):
        if isinstance(relation, Split):
            if relation.outer not in values or relation.inner not in values:
                _require(allow_missing, relation.outer)
                continue
            factor = ranges[relation.inner].extent
            value = operators.add(operators.multiply(values[relation.outer], factor), values[relation.inner])
            values[relation.parent] = operators.add(value, ranges[relation.parent].min)
        elif isinstance(relation, Fuse):
            if relation.fused not in values:
                _require(allow_missing, relation.fused)
                continue
            value = values[relation.fused]
            factor = ranges[relation.inner].extent
            values[relation.outer] = operators.add(
                operators.floordiv(value, factor), ranges[relation.outer].min
            )
            values[relation.inner] = operators.add(
                operators.floormod(value, factor), ranges[relation.inner].min
            )
        elif isinstance(relation, Rebase):
            if relation.rebased not in values:
                _require(allow_missing, relation.rebased)
                continue
            values[relation.parent] = operators.add(values[relation.rebased], ranges[relation.parent].min)


def pass_down_values(relations: Sequence[IterVarRelation], ranges: Ranges, values: Values) -> None:
    """The values of the leaves from those of the roots."""
    for relation in relations:
        if isinstance(relation, Split):
            value = operators.subtract(values[relation.parent], ranges[relation.parent].min)
            factor = ranges[relation.inner].extent
            values[relation.outer] = operators.floordiv(value, factor)
            values[relation.inner] = operators.floormod(value, factor)
        elif isinstance(relation, Fuse):
            outer = operators.subtract(values[relation.outer], ranges[relation.outer].min)
            inner = operators.subtract(values[relation.inner], ranges[relation.inner].min)
            values[relation.fused] = operators.add(
                operators.multiply(outer, ranges[relation.inner].extent), inner
            )
        elif isinstance(relation, Rebase):
            values[relation.rebased] = operators.subtract(
                values[relation.parent], ranges[relation.parent].min
            )
        elif isinstance(relation, Singleton):
            values[relation.iter] = operators.const(0, "int32")


def pass_up_sets(
    relations: Sequence[IterVarRelation], ranges: Ranges, sets: Sets, analyzer: Analyzer
) -> None:
    """The sets of values that all axes take from those that the leaves take."""
    for relation in reversed(relations):
        if isinstance(relation, Split):
            outer, inner = sets[relation.outer], sets[relation.inner]
            if _covers(outer, ranges[relation.outer], analyzer) and _covers(
                inner, ranges[relation.inner], analyzer
            ):
                sets[relation.parent] = IntervalSet.from_range(ranges[relation.parent])
                continue
            factor = ranges[relation.inner].extent
            value = relation.outer.var * factor + relation.inner.var + ranges[relation.parent].min
            sets[relation.parent] = eval_int_set(
                value, {relation.outer.var: outer, relation.inner.var: inner}, analyzer
            )
        elif isinstance(relation, Fuse):
            _split_fused_set(relation, ranges, sets, analyzer)
        elif isinstance(relation, Rebase):
            moved = sets[relation.rebased]
            if _covers(moved, ranges[relation.rebased], analyzer):
                sets[relation.parent] = IntervalSet.from_range(ranges[relation.parent])
            else:
                value = relation.rebased.var + ranges[relation.parent].min
                sets[relation.parent] = eval_int_set(value, {relation.rebased.var: moved}, analyzer)


def _split_fused_set(relation: Fuse, ranges: Ranges, sets: Sets, analyzer: Analyzer) -> None:
    """The sets of the two parts of a fused axis."""
    fused = sets[relation.fused]
    outer_range, inner_range = ranges[relation.outer], ranges[relation.inner]
    if _covers(fused, ranges[relation.fused], analyzer):
        sets[relation.outer] = IntervalSet.from_range(outer_range)
        sets[relation.inner] = IntervalSet.from_range(inner_range)
        return
    factor = inner_range.extent
    first = operators.floordiv(fused.min_value, factor)
    last = operators.floordiv(fused.max_value, factor)
    sets[relation.outer] = IntervalSet(
        analyzer.simplify(first + outer_range.min), analyzer.simplify(last + outer_range.min)
    )
    if analyzer.can_prove_equal(first, last):
        low = operators.floormod(fused.min_value, factor) + inner_range.min
        high = operators.floormod(fused.max_value, factor) + inner_range.min
        sets[relation.inner] = IntervalSet(analyzer.simplify(low), analyzer.simplify(high))
    else:
        sets[relation.inner] = IntervalSet.from_range(inner_range)


def _covers(values: IntervalSet, whole: Range, analyzer: Analyzer) -> bool:
    """True if the set is the whole range."""
    if not analyzer.can_prove_equal(values.min_value, whole.min):
        return False
    return bool(
        analyzer.can_prove_equal(
            values.max_value, operators.subtract(operators.add(whole.min, whole.extent), 1)
        )
    )


def pass_down_marks(relations: Sequence[IterVarRelation], marks: dict[IterVar, int]) -> None:
    """Bits of the parents go to all that come from them."""
    for relation in relations:
        if isinstance(relation, Split):
            value = marks.get(relation.parent, 0)
            for axis in (relation.outer, relation.inner):
                marks[axis] = marks.get(axis, 0) | value
        elif isinstance(relation, Fuse):
            value = marks.get(relation.outer, 0) | marks.get(relation.inner, 0)
            marks[relation.fused] = marks.get(relation.fused, 0) | value
        elif isinstance(relation, Rebase):
            marks[relation.rebased] = marks.get(relation.rebased, 0) | marks.get(relation.parent, 0)
        elif isinstance(relation, Singleton):
            marks.setdefault(relation.iter, 0)


def bound_predicates(
    relations: Sequence[IterVarRelation],
    roots: Sequence[IterVar],
    ranges: Ranges,
    values: Values,
    leaf_sets: dict[Var, IntervalSet],
    analyzer: Analyzer,
    check_domain: bool = True,
    skip: frozenset[IterVar] = frozenset(),
    unchecked: frozenset[IterVar] = frozenset(),
) -> list[PrimExpr]:
    """The conditions under which the loops are inside what must be computed.

    Two things can go wrong. A split that does not divide runs past the end of the axis it splits; that axis
    need not be a root, and running past its end would repeat iterations of the axis next to it, which a
    reduction must not. And an inferred range, taken wider than needed because sets of values are intervals,
    runs past the operation's own domain; ``check_domain`` adds a guard for that too, on all axes but the ``unchecked``.
    Where the guards of splits hold, an axis is inside its inferred range: one that is inside the domain needs no guard.
    """
    predicates: list[PrimExpr] = []

    def require(offset: PrimExpr, limit: PrimExpr) -> None:
        bounds = eval_int_set(offset, leaf_sets, analyzer)
        if not bounds.has_upper_bound or not analyzer.can_prove(operators.less(bounds.max_value, limit)):
            predicates.append(operators.less(analyzer.simplify(offset), limit))

    for relation in relations:
        if isinstance(relation, Split) and relation.parent in values and relation.parent not in skip:
            whole = ranges[relation.parent]
            product = operators.multiply(ranges[relation.outer].extent, ranges[relation.inner].extent)
            if not analyzer.can_prove_equal(product, whole.extent):
                require(operators.subtract(values[relation.parent], whole.min), whole.extent)
    for axis in roots if check_domain else ():
        if axis in skip or axis in unchecked or axis.iter_type == IterVar.Opaque:
            continue
        if axis not in values or axis.dom is None:
            continue
        if _same_range(ranges[axis], axis.dom, analyzer):
            continue
        if not skip and _is_inside(ranges[axis], axis.dom, analyzer):
            continue
        offset = operators.subtract(values[axis], axis.dom.min)
        bounds = eval_int_set(offset, leaf_sets, analyzer)
        if not bounds.has_lower_bound or not analyzer.can_prove(operators.greater_equal(bounds.min_value, 0)):
            predicates.append(
                operators.greater_equal(analyzer.simplify(offset), operators.const(0, offset.dtype))
            )
        require(offset, axis.dom.extent)
    return [predicate for predicate in predicates if not is_const(predicate, 1)]


def _is_inside(one: Range, other: Range, analyzer: Analyzer) -> bool:
    """True if all of a range is known to be inside another one."""
    offset = operators.subtract(one.min, other.min)
    return bool(
        analyzer.can_prove(operators.greater_equal(offset, 0))
        and analyzer.can_prove(operators.less_equal(operators.add(offset, one.extent), other.extent))
    )


def _same_range(one: Range, other: Range, analyzer: Analyzer) -> bool:
    """True if both ranges are known to be the same: then the loops over one are inside the other."""
    return one is other or bool(
        analyzer.can_prove_equal(one.min, other.min) and analyzer.can_prove_equal(one.extent, other.extent)
    )
