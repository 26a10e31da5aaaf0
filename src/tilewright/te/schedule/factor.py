"""``rfactor``: a reduction in two steps, so that the first can run in parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.arith import Analyzer, IntervalSet
from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var
from tilewright.ir.functor import substitute_expr
from tilewright.support.errors import ScheduleError
from tilewright.support.span import user_span
from tilewright.te.operation import ComputeOp, share_reduction
from tilewright.te.schedule.dataflow import replace_dataflow, set_operation
from tilewright.te.schedule.loop_nest import likely
from tilewright.te.schedule.relations import (
    IterVarRelation,
    Values,
    bound_predicates,
    pass_down_ranges,
    pass_up_values,
)
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Tensor

if TYPE_CHECKING:
    from tilewright.te.schedule.schedule import Schedule


def rfactor(schedule: Schedule, tensor: Tensor, axis: IterVar, factor_axis: int) -> list[Tensor]:
    """See ``Schedule.rfactor``."""
    if not isinstance(tensor, Tensor) or tensor not in schedule:
        raise ScheduleError(f"rfactor of {tensor!r}: it is not a tensor of this schedule", span=user_span())
    stage = schedule.stage_map[tensor.op]
    operation = stage.op
    if not isinstance(operation, ComputeOp) or not operation.reduce_axis:
        stage.fail("rfactor", axis, "the stage is not a reduction")
    stage.leaf_position("rfactor", axis)
    if axis.iter_type != IterVar.CommReduce:
        stage.fail("rfactor", axis, "it is not a reduction axis")
    if stage.attributes(axis).bind_thread is not None:
        stage.fail("rfactor", axis, "it is bound to a thread")
    if not isinstance(factor_axis, int):
        stage.fail("rfactor", axis, f"factor_axis {factor_axis!r} is not the number of a dimension")
    count = len(operation.axis)
    position = factor_axis if factor_axis >= 0 else count + 1 + factor_axis
    if not 0 <= position <= count:
        stage.fail(
            "rfactor",
            axis,
            f"the new tensor has {count + 1} dimensions, factor_axis {factor_axis} is none of them",
        )
    if any(body.init for body in operation.body if isinstance(body, Reduce)):
        stage.fail("rfactor", axis, "a reduction with an initial value cannot be factored")
    step = schedule.trace.begin("rfactor", None, [tensor, axis, factor_axis])
    factored, extent = _factored(stage, operation, axis, position)
    repeated = _second_step(operation, factored, axis, extent, position)
    place = schedule.stages.index(stage)
    made = schedule.add_stage(factored, place)
    made.group = stage.group
    replaced = dict(zip(operation.outputs, repeated.outputs, strict=True))
    set_operation(stage, repeated)
    stage.start_from(repeated)
    replace_dataflow(schedule.stages, replaced)
    schedule.trace.finish(step, factored.outputs)
    return list(factored.outputs)


def _factored(stage: Stage, operation: ComputeOp, axis: IterVar, position: int) -> tuple[ComputeOp, Range]:
    """The first step: the reduction over all leaves but ``axis``, which becomes a data axis."""
    analyzer = Analyzer()
    ranges = {root: root.dom for root in operation.root_iter_vars if root.dom is not None}
    pass_down_ranges(stage.relations, ranges, analyzer)
    data = [IterVar(root.dom, Var(root.var.name, root.var.dtype), IterVar.DataPar) for root in operation.axis]
    extent = Range.from_min_extent(operators.const(0, axis.var.dtype), ranges[axis].extent)
    factor = IterVar(extent, Var(axis.var.name, axis.var.dtype), IterVar.DataPar)
    values: Values = {old: new.var for old, new in zip(operation.axis, data, strict=True)}
    values[axis] = operators.add(factor.var, ranges[axis].min)
    # Axes that no primitive has changed stay the very same ones, and come first; leaves of others keep their variables.
    leaves = [
        leaf for leaf in stage.leaf_iter_vars if leaf.iter_type == IterVar.CommReduce and leaf is not axis
    ]
    reductions = [root for root in operation.reduce_axis if root in leaves]
    reductions += [
        IterVar(ranges[leaf], leaf.var, IterVar.CommReduce)
        for leaf in leaves
        if leaf not in operation.reduce_axis
    ]
    values.update({leaf: leaf.var for leaf in leaves})
    relations = _reduction_relations(stage, operation)
    pass_up_values(relations, ranges, values)
    sets = {
        one.var: IntervalSet.from_range(one.dom)
        for one in (*data, factor, *reductions)
        if one.dom is not None
    }
    for one in (*data, factor, *reductions):
        if one.dom is not None:
            analyzer.bind(one.var, one.dom)
    guards = bound_predicates(
        relations, operation.reduce_axis, ranges, values, sets, analyzer, check_domain=False
    )
    mapping = {root.var: analyzer.simplify(values[root]) for root in operation.root_iter_vars}
    if not reductions:
        reductions = [IterVar(Range(0, 1), Var(f"{axis.var.name}.once", axis.var.dtype), IterVar.CommReduce)]
    body: list[PrimExpr] = []
    for value in operation.body:
        assert isinstance(value, Reduce)
        condition = substitute_expr(value.condition, mapping)
        for guard in guards:
            # As with the guards of loops: it fails only at the end, which is then split off.
            condition = operators.logical_and(condition, likely(guard))
        source = [substitute_expr(one, mapping) for one in value.source]
        body.append(
            Reduce(value.combiner, source, reductions, condition, value.value_index, None, value.span)
        )
    axes = [*data[:position], factor, *data[position:]]
    made = ComputeOp(
        f"{operation.name}.rf", operation.tag, operation.attrs, axes, share_reduction(body), operation.span
    )
    return made, extent


def _reduction_relations(stage: Stage, operation: ComputeOp) -> list[IterVarRelation]:
    """The relations that come from reduction axes; those of data axes do not matter to the new tensor."""
    from_reduction = {id(root) for root in operation.reduce_axis}
    kept = []
    for relation in stage.relations:
        parents = [
            getattr(relation, name)
            for name in ("parent", "outer", "inner", "fused", "rebased")
            if hasattr(relation, name)
        ]
        if any(id(one) in from_reduction for one in parents):
            from_reduction.update(id(one) for one in parents)
            kept.append(relation)
    return kept


def _second_step(
    operation: ComputeOp, factored: ComputeOp, axis: IterVar, extent: Range, position: int
) -> ComputeOp:
    """The reduction of the factored tensor over its new axis, with the axes of the original."""
    over = IterVar(extent, Var(f"{axis.var.name}.v", axis.var.dtype), IterVar.CommReduce)
    indices: list[PrimExpr] = [one.var for one in operation.axes]
    indices.insert(position, over.var)
    source = [ProducerLoad(tensor, indices) for tensor in factored.outputs]
    body: list[PrimExpr] = []
    for value in operation.body:
        assert isinstance(value, Reduce)
        body.append(Reduce(value.combiner, source, [over], True, value.value_index, None, value.span))
    return ComputeOp(
        operation.name, operation.tag, operation.attrs, operation.axes, share_reduction(body), operation.span
    )
