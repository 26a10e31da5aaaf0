"""Division of an iterator map into the part over some loop variables and the part over the rest.

Each binding ``b`` becomes ``outer * inner_extent + inner``, where ``inner`` uses the given variables only and
``outer`` none of them. This is what blockizing a loop nest needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tilewright.arith.iter_detect import Detector, NotAffine
from tilewright.arith.iter_map import IterMark, IterSplitExpr, IterSumExpr, normalize_iter_map_to_expr
from tilewright.ir import operators
from tilewright.ir.expr import ExprLike, IntImm, IterVar, PrimExpr, Range, Var
from tilewright.ir.functor import uses_var
from tilewright.support.recursion import recursion_room


class Division(NamedTuple):
    """``outer * inner_extent + inner``."""

    outer: IterSumExpr
    outer_extent: PrimExpr
    inner: IterSumExpr
    inner_extent: PrimExpr


def subspace_divide(
    bindings: Sequence[ExprLike],
    input_iters: Mapping[Any, Range],
    sub_iters: Sequence[Var | IterVar],
    predicate: ExprLike = True,
    require_bijective: bool = False,
) -> list[list[IterMark]]:
    """For each binding its outer and its inner part, as marks.

    Last come two marks whose extents are the outer and the inner predicate.
    An empty list if the bindings are not an iterator map, or the map cannot be divided so.
    """
    detector = Detector(input_iters)
    try:
        with recursion_room():
            detector.constrain(operators.as_expr(predicate))
            found = [detector.fused(detector.rewrite(operators.as_expr(binding))) for binding in bindings]
            detector.check(found, require_bijective)
            divider = _Divider(
                detector, [axis.var if isinstance(axis, IterVar) else axis for axis in sub_iters]
            )
            divisions = [divider.binding(item) for item in found]
    except NotAffine:
        return []
    made = [[IterMark(d.outer, d.outer_extent), IterMark(d.inner, d.inner_extent)] for d in divisions]
    empty = IterSumExpr((), operators.const(0))
    made.append([IterMark(empty, divider.outer_predicate), IterMark(empty, divider.inner_predicate)])
    return made


class _Divider:
    def __init__(self, detector: Detector, variables: Sequence[Var]) -> None:
        self.detector = detector
        self.variables = variables
        self.memo: dict[IterMark, tuple[IterMark, IterMark]] = {}
        self.outer_predicate: PrimExpr = operators.const(True)
        self.inner_predicate: PrimExpr = operators.const(True)

    def _nothing(self, dtype: str) -> tuple[IterSumExpr, PrimExpr]:
        return IterSumExpr((), operators.const(0, dtype)), operators.const(1, dtype)

    def binding(self, given: IterSumExpr) -> Division:
        """One binding divided; the base goes to the inner part."""
        empty, one = self._nothing(given.dtype)
        if not given.args:
            return Division(empty, one, IterSumExpr((), given.base), one)
        split = given.args[0]
        outer, inner = self.split(split)
        if outer is None:
            assert inner is not None
            return Division(empty, one, IterSumExpr((inner,), given.base), inner.extent)
        if inner is None:
            return Division(IterSumExpr((outer,), empty.base), outer.extent, IterSumExpr((), given.base), one)
        if not (isinstance(split.scale, IntImm) and split.scale.value == 1):
            raise NotAffine
        return Division(
            IterSumExpr((outer,), empty.base), outer.extent, IterSumExpr((inner,), given.base), inner.extent
        )

    def split(self, split: IterSplitExpr) -> tuple[IterSplitExpr | None, IterSplitExpr | None]:
        """The outer and the inner part of a split, None where there is none; the outer one counts whole inner parts."""
        detector = self.detector
        source = split.source.source
        if not isinstance(source, IterSumExpr):
            return (None, split) if uses_var(source, self.variables) else (split, None)
        outer_mark, inner_mark = self.mark(split.source)
        inner_extent = inner_mark.extent
        if self._is_one(inner_extent):
            return IterSplitExpr(outer_mark, split.lower_factor, split.extent, split.scale), None
        if self._is_one(outer_mark.extent):
            return None, IterSplitExpr(inner_mark, split.lower_factor, split.extent, split.scale)
        covered = detector.simplify(operators.multiply(split.lower_factor, split.extent))
        if detector.divides(covered, inner_extent):
            return None, IterSplitExpr(inner_mark, split.lower_factor, split.extent, split.scale)
        if detector.divides(inner_extent, split.lower_factor):
            lower = detector.simplify(operators.floordiv(split.lower_factor, inner_extent))
            return IterSplitExpr(outer_mark, lower, split.extent, split.scale), None
        if detector.divides(split.lower_factor, inner_extent) and detector.divides(inner_extent, covered):
            inside = detector.simplify(operators.floordiv(inner_extent, split.lower_factor))
            outside = detector.simplify(operators.floordiv(covered, inner_extent))
            return (
                IterSplitExpr(outer_mark, None, outside, split.scale),
                IterSplitExpr(inner_mark, split.lower_factor, inside, split.scale),
            )
        raise NotAffine

    def mark(self, mark: IterMark) -> tuple[IterMark, IterMark]:
        """The outer and the inner mark of a fused mark: ``mark = outer * inner.extent + inner``."""
        found = self.memo.get(mark)
        if found is not None:
            return found
        total: Any = mark.source
        outer_args: list[IterSplitExpr] = []
        inner_args: list[IterSplitExpr] = []
        outer_extent: PrimExpr = operators.const(1, total.dtype)
        inner_extent: PrimExpr = operators.const(1, total.dtype)
        for split in reversed(total.args):
            plain = IterSplitExpr(split.source, split.lower_factor, split.extent)
            outer, inner = self.split(plain)
            if inner is not None:
                # Nothing inner may be outside something outer.
                if outer_args:
                    raise NotAffine
                inner_args.insert(
                    0, IterSplitExpr(inner.source, inner.lower_factor, inner.extent, inner_extent)
                )
                inner_extent = self.detector.simplify(operators.multiply(inner_extent, inner.extent))
            if outer is not None:
                outer_args.insert(
                    0, IterSplitExpr(outer.source, outer.lower_factor, outer.extent, outer_extent)
                )
                outer_extent = self.detector.simplify(operators.multiply(outer_extent, outer.extent))
        zero = operators.const(0, total.dtype)
        constrained = any(mark is known for _, known in self.detector.constraints)
        if constrained:
            condition = operators.less(normalize_iter_map_to_expr(total), mark.extent)
            if not outer_args:
                self.inner_predicate = operators.logical_and(self.inner_predicate, condition)
                inner_extent = mark.extent
            elif not inner_args:
                self.outer_predicate = operators.logical_and(self.outer_predicate, condition)
                outer_extent = mark.extent
            else:
                raise NotAffine
        made = (
            IterMark(IterSumExpr(outer_args, zero), outer_extent),
            IterMark(IterSumExpr(inner_args, zero), inner_extent),
        )
        self.memo[mark] = made
        return made

    def _is_one(self, extent: PrimExpr) -> bool:
        return isinstance(extent, IntImm) and extent.value == 1
