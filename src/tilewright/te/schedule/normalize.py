"""Making a schedule ready for bound inference.

Inlined stages are put into their readers, a place inside of an inlined stage or of a loop that a later split
replaced is mended, and every loop that is a root axis is moved to start at zero, so that loops over inferred
ranges do not carry their offset in every expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr, ProducerLoad, Reduce, Var
from tilewright.ir.functor import Mutator, substitute_expr
from tilewright.support.errors import ScheduleError
from tilewright.support.recursion import recursion_room
from tilewright.te.operation import ComputeOp, PlaceholderOp, share_reduction
from tilewright.te.schedule.dataflow import replace_dataflow, set_operation
from tilewright.te.schedule.relations import Fuse, Rebase, Split
from tilewright.te.schedule.stage import AttachType, Stage
from tilewright.te.tensor import Tensor

if TYPE_CHECKING:
    from tilewright.te.schedule.schedule import Schedule


def normalize(schedule: Schedule) -> Schedule:
    """See the module's text. The given schedule stays as it is."""
    made = schedule.copy()
    _inline(made)
    _mend_places(made)
    _rebase(made)
    return made


class _Inline(Mutator):
    """Replaces reads of a tensor by the expression that computes it."""

    memoize = True

    def __init__(self, operation: ComputeOp) -> None:
        super().__init__()
        self.operation = operation

    def visit_producer_load(self, node: ProducerLoad) -> PrimExpr:
        made = node.map_children(self.visit)
        tensor = node.producer
        if not isinstance(tensor, Tensor) or tensor.op is not self.operation:
            return made
        # An index that is data may be wider than the axis that it stands for.
        mapping = {
            axis.var: operators.cast(axis.var.dtype, index)
            for axis, index in zip(self.operation.axes, made.indices, strict=True)
        }
        return substitute_expr(self.operation.body[tensor.value_index], mapping)


def _inline(schedule: Schedule) -> None:
    """Put inlined stages into their readers, last ones first so that each expression is put in whole."""
    for position in range(len(schedule.stages) - 1, -1, -1):
        stage = schedule.stages[position]
        if stage.attach_type != AttachType.INLINE:
            continue
        operation = stage.op
        if not isinstance(operation, ComputeOp) or operation.reduce_axis:
            stage.fail("compute_inline", None, "only a computation without a reduction can be inlined")
        stage.attach_type = AttachType.INLINED_ALREADY
        for reader in schedule.stages[position + 1 :]:
            if not any(tensor.op is operation for tensor in reader.op.input_tensors):
                continue
            if not isinstance(reader.op, ComputeOp):
                raise ScheduleError(
                    f"compute_inline on stage {stage.label}: its reader {reader.label} is not a computation "
                    f"({type(reader.op).__name__}), it needs the tensor in memory"
                )
            _inline_into(schedule, reader, operation)


def _inline_into(schedule: Schedule, reader: Stage, operation: ComputeOp) -> None:
    old = reader.op
    assert isinstance(old, ComputeOp)
    rewriter = _Inline(operation)
    with recursion_room():
        body = [_visit_value(rewriter, value) for value in old.body]
    made = ComputeOp(old.name, old.tag, old.attrs, old.axes, share_reduction(body), old.span)
    replaced = dict(zip(old.outputs, made.outputs, strict=True))
    set_operation(reader, made)
    replace_dataflow(schedule.stages[schedule.stages.index(reader) + 1 :], replaced)


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
    """Root axes that are loops of their own start at zero."""
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
