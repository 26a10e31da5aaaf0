"""Detection of quasi-affine iterator maps.

``detect_iter_map`` proves that indices are computed from loop variables only by splitting and fusing, and that no two
of them use the same digit of a variable. Then the map from loop variables to indices is injective.
``require_bijective`` also requires that every digit is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.arith.core import AnalyzerCore, knowing_nothing
from tilewright.arith.iter_map import (
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    same_split,
    same_value,
)
from tilewright.ir import operators
from tilewright.ir.expr import (
    GE,
    GT,
    LE,
    LT,
    Add,
    And,
    Call,
    ExprLike,
    FloorDiv,
    FloorMod,
    IntImm,
    IterVar,
    Mul,
    PrimExpr,
    Range,
    Sub,
    Var,
)
from tilewright.ir.functor import uses_var
from tilewright.support.recursion import recursion_room


class NotAffine(Exception):
    """The expression is not made by splitting and fusing. Caught within this package."""


def detect_iter_map(
    indices: Sequence[ExprLike],
    input_iters: Mapping[Any, Range],
    predicate: ExprLike = True,
    require_bijective: bool = False,
) -> list[IterSumExpr]:
    """The indices as sums of at most one split each; an empty list if they are not such a map.

    The predicate may bound fused expressions from above, as the guard of a split that does not divide does.
    """
    detector = Detector(input_iters)
    try:
        with recursion_room():
            detector.constrain(operators.as_expr(predicate))
            found = [detector.fused(detector.rewrite(operators.as_expr(index))) for index in indices]
            detector.check(found, require_bijective)
    except NotAffine:
        return []
    return found


class Detector:
    """Rewrites expressions over given loop variables into sums of splits."""

    def __init__(self, input_iters: Mapping[Any, Range]) -> None:
        self.analyzer = AnalyzerCore()
        self.sums: dict[Var, IterSumExpr] = {}
        self.marks: list[IterMark] = []
        self.fusions: list[tuple[tuple[IterSplitExpr, ...], IterMark]] = []
        self.constraints: list[tuple[tuple[IterSplitExpr, ...], IterMark]] = []
        for axis, domain in input_iters.items():
            variable = axis.var if isinstance(axis, IterVar) else axis
            extent = self.analyzer.simplify(domain.extent)
            if isinstance(extent, IntImm) and extent.value == 1:
                self.sums[variable] = IterSumExpr((), domain.min)
                continue
            zero_based = isinstance(domain.min, IntImm) and domain.min.value == 0
            source = variable if zero_based else operators.subtract(variable, domain.min)
            mark = IterMark(source, extent)
            self.marks.append(mark)
            self.sums[variable] = IterSumExpr((IterSplitExpr(mark),), domain.min)
        for axis, domain in input_iters.items():
            self.analyzer.bind(axis.var if isinstance(axis, IterVar) else axis, domain)

    def integer(self, value: int, dtype: str) -> PrimExpr:
        """A constant."""
        return operators.const(value, dtype)

    def equal(self, a: PrimExpr, b: PrimExpr) -> bool:
        """True if both are known to be equal."""
        return same_value(a, b) or self.analyzer.can_prove_equal(a, b)

    def divides(self, divisor: PrimExpr, value: PrimExpr) -> bool:
        """True if the remainder is known to be zero."""
        return self.equal(operators.floormod(value, divisor), self.integer(0, value.dtype))

    def simplify(self, expr: PrimExpr) -> PrimExpr:
        """The expression simplified."""
        return self.analyzer.simplify(expr)

    # Expressions.

    def rewrite(self, node: Any) -> IterSumExpr:
        """The sum of splits that an expression is."""
        kind = type(node)
        if isinstance(node, Var):
            found = self.sums.get(node)
            return IterSumExpr((), node) if found is None else found
        if kind is Add:
            return self._add(self.rewrite(node.a), self.rewrite(node.b), 1)
        if kind is Sub:
            return self._add(self.rewrite(node.a), self.rewrite(node.b), -1)
        if kind is Mul:
            a, b = self.rewrite(node.a), self.rewrite(node.b)
            if a.args and b.args:
                raise NotAffine
            return self._scaled(a, b.base) if a.args else self._scaled(b, a.base)
        if kind is FloorDiv or kind is FloorMod:
            divisor = self.rewrite(node.b)
            if divisor.args:
                raise NotAffine
            dividend = self.rewrite(node.a)
            if not dividend.args:
                return IterSumExpr((), self.simplify(kind(dividend.base, divisor.base)))
            return (
                self._quotient(dividend, divisor.base)
                if kind is FloorDiv
                else self._remainder(dividend, divisor.base)
            )
        if uses_var(node, list(self.sums)):
            raise NotAffine
        return IterSumExpr((), node)

    def _scaled(self, given: IterSumExpr, factor: PrimExpr) -> IterSumExpr:
        if isinstance(factor, IntImm) and factor.value == 0:
            return IterSumExpr((), factor)
        splits = [
            IterSplitExpr(
                split.source,
                split.lower_factor,
                split.extent,
                self.simplify(operators.multiply(split.scale, factor)),
            )
            for split in given.args
        ]
        return IterSumExpr(splits, self.simplify(operators.multiply(given.base, factor)))

    def _add(self, a: IterSumExpr, b: IterSumExpr, sign: int) -> IterSumExpr:
        """The sum, with equal digits joined."""
        other = b if sign == 1 else self._scaled(b, self.integer(-1, b.dtype))
        splits = list(a.args)
        for split in other.args:
            for position, known in enumerate(splits):
                if known.source is split.source and same_value(known.lower_factor, split.lower_factor):
                    if same_value(known.extent, split.extent):
                        scale = self.simplify(operators.add(known.scale, split.scale))
                        splits[position] = IterSplitExpr(
                            known.source, known.lower_factor, known.extent, scale
                        )
                        break
            else:
                splits.append(split)
        kept = [split for split in splits if not (isinstance(split.scale, IntImm) and split.scale.value == 0)]
        return IterSumExpr(kept, self.simplify(operators.add(a.base, other.base)))

    def _single(self, given: IterSumExpr) -> IterSplitExpr:
        """The one split that a sum without base fuses to."""
        fused = self.fused(given)
        if not self.equal(fused.base, self.integer(0, fused.dtype)):
            raise NotAffine
        return fused.args[0]

    def _quotient(self, given: IterSumExpr, divisor: PrimExpr) -> IterSumExpr:
        zero = self.integer(0, given.dtype)
        if self.divides(divisor, given.base) and len(given.args) == 1:
            split, base = given.args[0], self.simplify(operators.floordiv(given.base, divisor))
        else:
            split, base = self._single(given), zero
        one = self.integer(1, given.dtype)
        if self.divides(divisor, split.scale):
            scale = self.simplify(operators.floordiv(split.scale, divisor))
            return IterSumExpr((IterSplitExpr(split.source, split.lower_factor, split.extent, scale),), base)
        if not self.divides(split.scale, divisor):
            raise NotAffine
        divisor = self.simplify(operators.floordiv(divisor, split.scale))
        if self.divides(divisor, split.extent):
            extent = self.simplify(operators.floordiv(split.extent, divisor))
            if self.equal(extent, one):
                return IterSumExpr((), base)
            lower = self.simplify(operators.multiply(split.lower_factor, divisor))
            return IterSumExpr((IterSplitExpr(split.source, lower, extent, one),), base)
        if self.analyzer.can_prove(operators.greater_equal(divisor, split.extent)):
            return IterSumExpr((), base)
        raise NotAffine

    def _remainder(self, given: IterSumExpr, divisor: PrimExpr) -> IterSumExpr:
        zero = self.integer(0, given.dtype)
        one = self.integer(1, given.dtype)
        if self.divides(divisor, given.base) and len(given.args) == 1:
            split = given.args[0]
        else:
            split = self._single(given)
        if self.divides(divisor, split.scale):
            return IterSumExpr((), zero)
        if not self.divides(split.scale, divisor):
            raise NotAffine
        small = self.simplify(operators.floordiv(divisor, split.scale))
        if self.equal(small, one):
            return IterSumExpr((), zero)
        if self.divides(small, split.extent):
            return IterSumExpr((IterSplitExpr(split.source, split.lower_factor, small, split.scale),), zero)
        if self.analyzer.can_prove(operators.greater_equal(small, split.extent)):
            return IterSumExpr((split,), zero)
        raise NotAffine

    # Fusing.

    def fused(self, given: IterSumExpr) -> IterSumExpr:
        """The sum with its splits fused into one."""
        if not given.args:
            return given
        bounded = self._bounded(given.args)
        if bounded is not None:
            return IterSumExpr((bounded,), given.base)
        if len(given.args) == 1:
            return given
        ordered, scale = self._ordered(given.args)
        extent: PrimExpr = self.integer(1, given.dtype)
        for split in ordered:
            extent = operators.multiply(extent, split.extent)
        return IterSumExpr((self._mark_of(ordered, scale, self.simplify(extent)),), given.base)

    def _ordered(self, splits: Sequence[IterSplitExpr]) -> tuple[list[IterSplitExpr], PrimExpr]:
        """The splits from the outermost to the innermost, such that each scale is the product of the extents within."""
        constants = [split.scale.value for split in splits if isinstance(split.scale, IntImm)]
        if not constants:
            raise NotAffine
        expected: PrimExpr = self.integer(min(constants, key=abs), splits[0].dtype)
        base = expected
        left = list(splits)
        inner_first: list[IterSplitExpr] = []
        while left:
            found = next((split for split in reversed(left) if self.equal(split.scale, expected)), None)
            if found is None:
                raise NotAffine
            left = [split for split in left if split is not found]
            inner_first.append(found)
            expected = self.simplify(operators.multiply(expected, found.extent))
        return inner_first[::-1], base

    def _mark_of(self, ordered: Sequence[IterSplitExpr], scale: PrimExpr, extent: PrimExpr) -> IterSplitExpr:
        """The split of the mark of a fused sum; one mark for each distinct sum."""
        plain = tuple(
            IterSplitExpr(
                split.source,
                split.lower_factor,
                split.extent,
                self.simplify(operators.floordiv(split.scale, scale)),
            )
            for split in ordered
        )
        for known, mark in self.fusions:
            if len(known) == len(plain) and all(same_split(a, b) for a, b in zip(known, plain, strict=True)):
                return IterSplitExpr(mark, scale=scale)
        mark = IterMark(IterSumExpr(plain, self.integer(0, scale.dtype)), extent)
        self.fusions.append((plain, mark))
        return IterSplitExpr(mark, scale=scale)

    # Predicates.

    def constrain(self, predicate: PrimExpr) -> None:
        """Enter the upper bounds that a predicate sets on fused expressions."""
        conditions: list[tuple[PrimExpr, PrimExpr]] = []
        stack: list[Any] = [self.simplify(predicate)]
        while stack:
            condition = stack.pop()
            kind = type(condition)
            if kind is And:
                stack += (condition.b, condition.a)
            elif kind is Call and getattr(condition.op, "name", "") == "tir.likely":
                stack.append(condition.args[0])
            elif kind in (LT, LE, GT, GE):
                left, right = (condition.a, condition.b) if kind in (LT, LE) else (condition.b, condition.a)
                conditions.append((left, operators.add(right, 1) if kind in (LE, GE) else right))
            elif not (isinstance(condition, IntImm) and condition.value):
                raise NotAffine
        rewritten = [self._constraint(left, right) for left, right in conditions]
        for splits, limit in sorted(rewritten, key=lambda item: len(item[0])):
            self._enter_constraint(splits, limit)

    def _constraint(self, left: PrimExpr, right: PrimExpr) -> tuple[tuple[IterSplitExpr, ...], PrimExpr]:
        """``sum of splits < limit``."""
        total = self._add(self.rewrite(left), self.rewrite(right), -1)
        if not total.args:
            raise NotAffine
        return total.args, self.simplify(operators.negative(total.base))

    def _enter_constraint(self, splits: Sequence[IterSplitExpr], limit: PrimExpr) -> None:
        ordered, scale = self._ordered(self._with_known_constraints(splits))
        if not (isinstance(scale, IntImm) and scale.value == 1):
            raise NotAffine
        extent: PrimExpr = self.integer(1, limit.dtype)
        for split in ordered:
            extent = operators.multiply(extent, split.extent)
        if self.analyzer.can_prove(operators.less_equal(extent, limit)):
            return
        if self.analyzer.can_prove(operators.less_equal(limit, 0)):
            raise NotAffine
        mark = IterMark(IterSumExpr(ordered, self.integer(0, limit.dtype)), limit)
        self.constraints.append((tuple(ordered), mark))

    def _with_known_constraints(self, splits: Sequence[IterSplitExpr]) -> Sequence[IterSplitExpr]:
        """The splits with each group that a smaller constraint bounds replaced by the split of its mark."""
        current = list(splits)
        for group, mark in self.constraints:
            found = self._find_group(group, current)
            if found is not None:
                members, scale = found
                current = [split for split in current if not any(split is member for member in members)]
                current.append(IterSplitExpr(mark, scale=scale))
        return current

    def _find_group(
        self, group: Sequence[IterSplitExpr], splits: Sequence[IterSplitExpr]
    ) -> tuple[list[IterSplitExpr], PrimExpr] | None:
        """The splits that are a constrained group times one scale, and that scale."""
        members: list[IterSplitExpr] = []
        scale: PrimExpr | None = None
        for wanted in reversed(group):
            match = next(
                (
                    split
                    for split in splits
                    if split.source is wanted.source
                    and same_value(split.lower_factor, wanted.lower_factor)
                    and same_value(split.extent, wanted.extent)
                ),
                None,
            )
            if match is None:
                return None
            if scale is None:
                scale = match.scale
            elif not self.equal(match.scale, operators.multiply(wanted.scale, scale)):
                return None
            members.append(match)
        return (members, scale) if scale is not None else None

    def _bounded(self, splits: Sequence[IterSplitExpr]) -> IterSplitExpr | None:
        """The split of a constrained mark that the splits amount to; None if no constraint involves them."""
        if not self.constraints:
            return None
        replaced = self._with_known_constraints(splits)
        if len(replaced) == len(splits) and all(a is b for a, b in zip(replaced, splits, strict=True)):
            return None
        if len(replaced) == 1:
            return replaced[0]
        ordered, scale = self._ordered(replaced)
        extent: PrimExpr = self.integer(1, scale.dtype)
        for split in ordered:
            extent = operators.multiply(extent, split.extent)
        return self._mark_of(ordered, scale, self.simplify(extent))

    # Overlap.

    def check(self, found: Sequence[IterSumExpr], require_bijective: bool) -> None:
        """Every mark's digits are used at most once; each exactly once for a bijective map."""
        used: dict[IterMark, list[IterSplitExpr]] = {}
        order: list[IterMark] = []

        def collect(splits: Sequence[IterSplitExpr]) -> None:
            for split in splits:
                if split.source not in used:
                    used[split.source] = []
                    order.append(split.source)
                used[split.source].append(split)

        for item in found:
            collect(item.args)
        position = 0
        while position < len(order):
            mark = order[position]
            position += 1
            if isinstance(mark.source, IterSumExpr):
                collect(mark.source.args)
        for mark in order:
            self._check_digits(mark, used[mark], require_bijective)
        for _, mark in self.constraints:
            if mark not in used:
                raise NotAffine
        if require_bijective:
            if any(mark not in used for mark in self.marks):
                raise NotAffine

    def _check_digits(self, mark: IterMark, splits: list[IterSplitExpr], require_bijective: bool) -> None:
        left = list(splits)
        expected: PrimExpr = self.integer(1, mark.extent.dtype)
        while left:
            found = next((split for split in left if self.equal(split.lower_factor, expected)), None)
            if found is None:
                if require_bijective:
                    raise NotAffine
                # A gap between digits: continue with the lowest digit above it.
                above = [split for split in left if self.divides(expected, split.lower_factor)]
                lowest = [
                    split.lower_factor.value for split in above if isinstance(split.lower_factor, IntImm)
                ]
                if len(above) != len(left) or not lowest:
                    raise NotAffine
                found = next(
                    split for split in above if same_value(split.lower_factor, IntImm("int32", min(lowest)))
                )
            # By position: two uses of one digit may be one object.
            del left[next(position for position, split in enumerate(left) if split is found)]
            expected = self.simplify(operators.multiply(found.lower_factor, found.extent))
        if require_bijective:
            if not self.equal(expected, mark.extent):
                raise NotAffine
        elif not self.divides(expected, mark.extent) and not self.equal(expected, mark.extent):
            raise NotAffine


def inverse_affine_iter_map(
    iter_map: Sequence[IterSumExpr], outputs: Sequence[PrimExpr]
) -> dict[Var, PrimExpr]:
    """The loop variables in terms of the indices that a bijective map made of them."""
    analyzer = knowing_nothing()
    totals: dict[IterMark, PrimExpr] = {}
    order: list[IterMark] = []

    def spread(total: IterSumExpr, value: PrimExpr) -> None:
        value = operators.subtract(value, total.base)
        for position, split in enumerate(total.args):
            digit = operators.floordiv(value, split.scale)
            if position:
                digit = operators.floormod(digit, split.extent)
            part = operators.multiply(digit, split.lower_factor)
            if split.source not in totals:
                order.append(split.source)
                totals[split.source] = part
            else:
                totals[split.source] = operators.add(totals[split.source], part)

    for item, output in zip(iter_map, outputs, strict=True):
        spread(item, output)
    found: dict[Var, PrimExpr] = {}
    # A mark is complete when every sum that uses a digit of it has been spread: inner marks wait for outer ones.
    pending = _users(iter_map)
    while order:
        mark = next(candidate for candidate in order if not pending.get(candidate))
        order.remove(mark)
        value = analyzer.simplify(totals[mark])
        if isinstance(mark.source, IterSumExpr):
            spread(mark.source, value)
            for split in mark.source.args:
                pending[split.source].discard(mark)
        elif isinstance(mark.source, Var):
            found[mark.source] = value
        else:
            shifted: Any = mark.source
            found[shifted.a] = analyzer.simplify(operators.add(value, shifted.b))
    return found


def _users(iter_map: Sequence[IterSumExpr]) -> dict[IterMark, set[IterMark]]:
    """For each mark, the fused marks whose sums use a digit of it."""
    users: dict[IterMark, set[IterMark]] = {}
    stack = [split.source for item in iter_map for split in item.args]
    seen = set(stack)
    while stack:
        mark = stack.pop()
        users.setdefault(mark, set())
        if isinstance(mark.source, IterSumExpr):
            for split in mark.source.args:
                users.setdefault(split.source, set()).add(mark)
                if split.source not in seen:
                    seen.add(split.source)
                    stack.append(split.source)
    return users
