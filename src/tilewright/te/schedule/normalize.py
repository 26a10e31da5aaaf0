"""Preparing a schedule for bound inference.

Inlined stages are substituted into their consumers, attach points in an inlined stage or at a loop that a later split
replaced are updated, and every loop over a root axis is shifted to start at zero, so that loops over inferred ranges do
not carry their offset in every expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING

from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr, ProducerLoad, Reduce, Var
from tilewright.ir.functor import Mutator, substitute_expr
from tilewright.support.errors import ScheduleError
from tilewright.support.recursion import recursion_room
from tilewright.te.operation import ComputeOp, PlaceholderOp, share_reduction
from tilewright.te.schedule.dataflow import set_operation
from tilewright.te.schedule.relations import Fuse, Rebase, Split
from tilewright.te.schedule.stage import AttachType
from tilewright.te.tensor import Operation, Tensor

if TYPE_CHECKING:
    from tilewright.te.schedule.schedule import Schedule


def normalize(schedule: Schedule) -> Schedule:
    """See the module's text. The given schedule stays as it is."""
    made = schedule.copy()
    apply_inlining(made)
    _mend_places(made)
    _rebase(made)
    return made


class _Inline(Mutator):
    """Replaces reads of inlined tensors by the expressions that compute them, and reads of tensors that were replaced
    by reads of those that stand for them.

    An expression is put in as it was written, and then looked at in turn: a chain costs as much as it is long. Reads of
    one element are one expression.
    """

    memoize = True

    def __init__(self, inlined: Set[Operation], replaced: Mapping[Tensor, Tensor]) -> None:
        super().__init__()
        self.inlined = inlined
        self.replaced = replaced
        self.elements: dict[tuple[Tensor, tuple[int, ...]], PrimExpr] = {}

    def visit_producer_load(self, node: ProducerLoad) -> PrimExpr:
        made = node.map_children(self.visit)
        tensor = node.producer
        if not isinstance(tensor, Tensor):
            return made
        operation = tensor.op
        if operation not in self.inlined:
            other = self.replaced.get(tensor)
            return made if other is None else ProducerLoad(other, made.indices, made.span)
        assert isinstance(operation, ComputeOp)
        # The indices stay alive in the memo of visits.
        key = (tensor, tuple(id(index) for index in made.indices))
        if key not in self.elements:
            # An index that is data may be wider than the axis that it stands for.
            mapping = {
                axis.var: operators.cast(axis.var.dtype, index)
                for axis, index in zip(operation.axes, made.indices, strict=True)
            }
            self.elements[key] = self.visit(substitute_expr(operation.body[tensor.value_index], mapping))
        return self.elements[key]


def apply_inlining(schedule: Schedule) -> None:
    """Put inlined stages into their readers, producers first. What was inlined itself stays as it was written.

    A scheduler that is done with inlining may do this before it caches what its stages then read.
    """
    inlined: set[Operation] = set()
    replaced: dict[Tensor, Tensor] = {}
    for stage in schedule.stages:
        operation = stage.op
        if stage.attach_type == AttachType.INLINE:
            if not isinstance(operation, ComputeOp) or operation.reduce_axis:
                stage.fail("compute_inline", None, "only a computation without a reduction can be inlined")
            stage.attach_type = AttachType.INLINED_ALREADY
            inlined.add(operation)
            continue
        missing = [tensor for tensor in operation.input_tensors if tensor.op in inlined]
        if missing and not isinstance(operation, ComputeOp):
            raise ScheduleError(
                f"compute_inline on stage {schedule[missing[0]].label}: its reader {stage.label} is not a computation "
                f"({type(operation).__name__}), it needs the tensor in memory"
            )
        if missing and isinstance(operation, ComputeOp):
            made: Operation = _with_inlined(operation, _Inline(inlined, replaced))
        else:
            made = operation.replace_inputs(replaced)
        if made is not operation:
            replaced.update(zip(operation.outputs, made.outputs, strict=True))
            set_operation(stage, made)


def _with_inlined(operation: ComputeOp, rewriter: _Inline) -> ComputeOp:
    with recursion_room():
        body = [_visit_value(rewriter, value) for value in operation.body]
    return ComputeOp(
        operation.name, operation.tag, operation.attrs, operation.axes, share_reduction(body), operation.span
    )


def _visit_value(rewriter: _Inline, value: PrimExpr) -> PrimExpr:
    made: PrimExpr = rewriter.visit(value)
    if isinstance(made, Reduce) and not made.condition.dtype.is_bool:
        made = made.replace(condition=operators.cast("bool", made.condition))
    return made


def _mend_places(schedule: Schedule) -> None:
    """A stage placed at an axis that was split or fused afterwards moves to the axis that took its place."""
    for stage in schedule.stages:
        if stage.attach_type != AttachType.SCOPE or stage.attach_stage is None or stage.attach_ivar is None:
            continue
        parent, axis = stage.attach_stage, stage.attach_ivar
        changed = True
        while changed and not any(axis is leaf for leaf in parent.leaf_iter_vars):
            changed = False
            for relation in parent.relations:
                if isinstance(relation, Split) and relation.parent is axis:
                    axis, changed = relation.inner, True
                elif isinstance(relation, Fuse) and (relation.inner is axis or relation.outer is axis):
                    axis, changed = relation.fused, True
        stage.attach_ivar = axis


def _rebase(schedule: Schedule) -> None:
    """Root axes that become loops start at zero."""
    moved: dict[IterVar, IterVar] = {}
    for stage in schedule.stages:
        if stage.attach_type == AttachType.INLINED_ALREADY or isinstance(stage.op, PlaceholderOp):
            continue
        if not isinstance(stage.op, ComputeOp) and not hasattr(stage.op, "rebase_axes"):
            continue
        roots = {id(axis) for axis in stage.op.root_iter_vars}
        for position, axis in enumerate(stage.leaf_iter_vars):
            if id(axis) not in roots:
                continue
            fresh = IterVar(None, Var(axis.var.name, axis.var.dtype), axis.iter_type)
            stage.relations.append(Rebase(axis, fresh))
            if axis in stage.axis_attributes:
                stage.axis_attributes[fresh] = stage.axis_attributes[axis]
                stage.update_attributes(axis, bind_thread=None)
            stage.all_iter_vars.append(fresh)
            stage.leaf_iter_vars[position] = fresh
            moved[axis] = fresh
    for stage in schedule.stages:
        if stage.attach_ivar is not None:
            stage.attach_ivar = moved.get(stage.attach_ivar, stage.attach_ivar)
    for group in schedule.groups:
        if group.attach_ivar is not None:
            group.attach_ivar = moved.get(group.attach_ivar, group.attach_ivar)
