"""Combining parallel branches: branches that apply the same heavy operator to the same data become one, whose result is
split.

A branch is a call of the operator and the elementwise operators that follow it, as long as each has one user. Branches
of a group start with calls that differ only in their weights. What follows is combined as long as all branches do the
same: their other operands are concatenated like the weights.

Weights and operands must not depend on a call of the operator: they have to be available before the first branch runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.adt import Match, bound_variables
from tilewright.relay.analysis.blocks import Blocks
from tilewright.relay.expr import Call, Let, Tuple
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.function import Function
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern
from tilewright.relay.op.shapes import dims
from tilewright.relay.transform.lib.rewriting import is_call, keep_type, made_type, scalar_value, shape_of
from tilewright.support.span import span_scope

Branch = list[Call]
"""The calls of a branch, the heavy one first."""

FOLLOWING = (OpPattern.ELEMWISE, OpPattern.BROADCAST)


class Combination:
    """How calls of one operator are combined; a subclass for each way."""

    operator = ""

    def supports(self, heavy: Call) -> bool:
        """True if the call can be part of a group at all."""
        raise NotImplementedError

    def compatible(self, first: Call, second: Call) -> bool:
        """True if two calls on the same data can be one."""
        raise NotImplementedError

    def combine(self, heavies: Sequence[Call], arguments: Sequence[Sequence[RelayExpr]]) -> RelayExpr:
        """One call for all; the arguments are those of the new program."""
        raise NotImplementedError

    def part(self, combined: RelayExpr, heavies: Sequence[Call], position: int) -> RelayExpr:
        """The result of one branch, sliced from the combined result."""
        raise NotImplementedError

    def joins(self, operands: Sequence[RelayExpr], heavies: Sequence[Call], axis: int | None) -> bool:
        """True if operands of following calls, one of each branch, can be one. They are vectors along ``axis`` of the
        results where that is given (the bias of bias_add), else aligned with the results at the last axis."""
        raise NotImplementedError

    def join(self, operands: Sequence[RelayExpr], heavies: Sequence[Call], axis: int | None) -> RelayExpr:
        """One operand for all branches, from those of the new program."""
        raise NotImplementedError

    def keeps_shape(self, before: Sequence[Any], after: Sequence[Any]) -> bool:
        """True if a following call leaves the shape of its tensor as the parts need it."""
        return tuple(before) == tuple(after)

    def follow(self, step: Call, arguments: Sequence[RelayExpr]) -> RelayExpr:
        """A following call, applied to the combined tensor and joined operands."""
        return Call(step.op, arguments, step.attrs)


class AlongAxis(Combination):
    """Results that are concatenated along an axis."""

    def axis(self, heavy: Call) -> int:
        """The axis of the result."""
        raise NotImplementedError

    def part(self, combined: RelayExpr, heavies: Sequence[Call], position: int) -> RelayExpr:
        """A slice."""
        axis = self.axis(heavies[0])
        extents = [constant_extent(heavy, axis) for heavy in heavies]
        return call(
            "strided_slice",
            combined,
            begin=(0,) * axis + (sum(extents[:position]),),
            end=(-1,) * axis + (extents[position],),
            strides=(1,) * (axis + 1),
            slice_mode="size",
        )

    def _own_axis(self, operand: RelayExpr, heavy: Call, axis: int | None) -> int:
        """The axis of an operand that is along that of the results; negative where it has none."""
        combined, rank = self.axis(heavy), len(shape_of(heavy))
        if axis is not None:
            return 0 if axis % rank == combined else -1
        return combined - (rank - len(shape_of(operand)))

    def joins(self, operands: Sequence[RelayExpr], heavies: Sequence[Call], axis: int | None) -> bool:
        """They have an element for each of the branch's along the axis, or are the same for all branches."""
        shapes = [list(shape_of(operand)) for operand in operands]
        place = self._own_axis(operands[0], heavies[0], axis)
        if _repeated(shapes[0], place):
            return _same_for_all(operands)
        if any(len(shape) != len(shapes[0]) for shape in shapes):
            return False
        extents = [shape.pop(place) for shape in shapes]
        fits = [constant_extent(heavy, self.axis(heavy)) for heavy in heavies] == extents
        return fits and all(shape == shapes[0] for shape in shapes)

    def join(self, operands: Sequence[RelayExpr], heavies: Sequence[Call], axis: int | None) -> RelayExpr:
        """One after another."""
        place = self._own_axis(operands[0], heavies[0], axis)
        if _repeated(shape_of(operands[0]), place):
            return operands[0]
        return call("concatenate", Tuple(operands), axis=place)


def _repeated(shape: Sequence[Any], place: int) -> bool:
    return place < 0 or shape[place] == 1


def _same_for_all(operands: Sequence[RelayExpr]) -> bool:
    first = operands[0]
    if all(operand is first for operand in operands):
        return True
    return shape_of(first) == () and all(
        scalar_value(operand) is not None and scalar_value(operand) == scalar_value(first)
        for operand in operands
    )


def constant_extent(expr: RelayExpr, axis: int) -> int:
    """An extent that is known."""
    extent = shape_of(expr)[axis]
    assert isinstance(extent, int)
    return extent


@dataclass(eq=False)
class _Group:
    branches: list[Branch]
    depth: int
    """How many calls of each branch are combined."""
    combined: RelayExpr | None = field(default=None)


class _Finder:
    """Finds groups of branches."""

    def __init__(self, func: Function, way: Combination, least: int) -> None:
        self.way = way
        self.users: dict[Any, list[Any]] = {}
        self.block_of = Blocks(func).of
        nodes: list[Any] = post_order(func.body)
        self.late: set[Any] = {bound for node in nodes for bound in _bound(node)}
        """Expressions that depend on a call of the operator, or are bound to a value that may."""
        by_data: dict[Any, list[Call]] = {}
        for expr in nodes:
            heavy = is_call(expr, way.operator)
            for child in expr.children():
                self.users.setdefault(child, []).append(expr)
            if heavy and self._early(expr.args[1:]) and way.supports(expr):
                by_data.setdefault((expr.args[0], self.block_of[expr]), []).append(expr)
            if heavy or any(child in self.late for child in expr.children()):
                self.late.add(expr)
        self.groups = [group for heavies in by_data.values() for group in self._grouped(heavies, least)]

    def _early(self, operands: Sequence[RelayExpr]) -> bool:
        return not any(operand in self.late for operand in operands)

    def _grouped(self, heavies: list[Call], least: int) -> list[_Group]:
        classes: list[list[Call]] = []
        for heavy in heavies:
            for members in classes:
                if self.way.compatible(members[0], heavy):
                    members.append(heavy)
                    break
            else:
                classes.append([heavy])
        found = []
        for members in classes:
            if len(members) >= least:
                branches = [self._branch(heavy) for heavy in members]
                found.append(_Group(branches, self._common_depth(branches)))
        return found

    def _branch(self, heavy: Call) -> Branch:
        branch, current = [heavy], heavy
        while True:
            users = self.users.get(current, [])
            following = users[0] if len(users) == 1 else None
            if not isinstance(following, Call) or not isinstance(following.op, Op):
                return branch
            if following.op.get_attr("TOpPattern") not in FOLLOWING:
                return branch
            if self.block_of[following] is not self.block_of[heavy]:
                return branch
            made = made_type(following)
            if not isinstance(made, TensorType) or not self.way.keeps_shape(shape_of(current), dims(made)):
                return branch
            branch.append(following)
            current = following

    def _common_depth(self, branches: list[Branch]) -> int:
        depth = 1
        while all(len(branch) > depth for branch in branches) and self._same_step(branches, depth):
            depth += 1
        return depth

    def _same_step(self, branches: list[Branch], depth: int) -> bool:
        """True if all branches do the same at this depth, and their operands can be joined."""
        steps = [branch[depth] for branch in branches]
        first = steps[0]
        place = _place(first, branches[0][depth - 1])
        for step, branch in zip(steps, branches, strict=True):
            if step.op is not first.op or step.attrs != first.attrs or len(step.args) != len(first.args):
                return False
            if _place(step, branch[depth - 1]) != place or not self._early(_others(step, place)):
                return False
        if first.attrs is not None and not _is_elementwise(first) and not is_call(first, "nn.bias_add"):
            return False
        heavies = [branch[0] for branch in branches]
        return all(
            self.way.joins([step.args[position] for step in steps], heavies, _bias_axis(first))
            for position in range(len(first.args))
            if position != place
        )


def _bound(node: Any) -> Sequence[Any]:
    """The variables that an expression binds to what is computed."""
    if isinstance(node, Let):
        return (node.var,)
    if isinstance(node, Function):
        return node.params
    if isinstance(node, Match):
        return [variable for clause in node.clauses for variable in bound_variables(clause.lhs)]
    return ()


def _is_elementwise(step: Call) -> bool:
    return isinstance(step.op, Op) and step.op.get_attr("TOpPattern") == OpPattern.ELEMWISE


def _bias_axis(step: Call) -> int | None:
    attrs: Any = step.attrs
    return int(attrs.axis) if is_call(step, "nn.bias_add") else None


def _place(step: Call, before: Call) -> int:
    return next(place for place, argument in enumerate(step.args) if argument is before)


def _others(step: Call, place: int) -> list[RelayExpr]:
    return [argument for position, argument in enumerate(step.args) if position != place]


class _Combiner(ExprMutator):
    """Puts parts of the combined calls where the branches ended."""

    def __init__(self, groups: list[_Group], way: Combination) -> None:
        super().__init__()
        self.way = way
        self.ends = {
            branch[group.depth - 1]: (group, position)
            for group in groups
            for position, branch in enumerate(group.branches)
        }

    def visit(self, expr: RelayExpr) -> Any:
        made = super().visit(expr)
        if made is not expr:
            keep_type(expr, made)
        return made

    def visit_function(self, fn: Function) -> RelayExpr:
        """Primitive functions stay."""
        return fn if fn.is_primitive else super().visit_function(fn)

    def visit_call(self, call: Call) -> RelayExpr:
        """A part, at the end of a branch."""
        found = self.ends.get(call)
        if found is None:
            return call.map_children(self.visit)
        group, position = found
        with span_scope(call.span):
            if group.combined is None:
                group.combined = self._combined(group)
            return self.way.part(group.combined, [branch[0] for branch in group.branches], position)

    def _combined(self, group: _Group) -> RelayExpr:
        heavies = [branch[0] for branch in group.branches]
        made = self.way.combine(
            heavies, [[self.visit(argument) for argument in heavy.args] for heavy in heavies]
        )
        for depth in range(1, group.depth):
            steps = [branch[depth] for branch in group.branches]
            place = _place(steps[0], group.branches[0][depth - 1])
            operands = [
                made
                if position == place
                else self.way.join(
                    [self.visit(step.args[position]) for step in steps], heavies, _bias_axis(steps[0])
                )
                for position in range(len(steps[0].args))
            ]
            made = self.way.follow(steps[0], operands)
        return made


def combine_parallel(func: Function, way: Combination, least: int) -> Function:
    """The function with groups of at least so many branches combined."""
    groups = _Finder(func, way, least).groups
    if not groups:
        return func
    return func.replace(body=_Combiner(groups, way).visit(func.body))
