"""``cache_read`` and ``cache_write``: copies of tensors in another storage scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from tilewright.arith import Analyzer, IntervalSet
from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr, ProducerLoad, Range, Reduce, Var
from tilewright.ir.functor import substitute_expr
from tilewright.support.errors import ScheduleError
from tilewright.support.span import user_span
from tilewright.te.operation import ComputeOp, share_reduction
from tilewright.te.schedule.dataflow import replace_dataflow, set_operation
from tilewright.te.schedule.relations import (
    Values,
    bound_predicates,
    pass_down_ranges,
    pass_down_values,
    pass_up_values,
)
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Operation, Tensor
from tilewright.te.tensor_intrin import TensorComputeOp

if TYPE_CHECKING:
    from tilewright.te.schedule.schedule import Schedule


def _fail(primitive: str, tensor: object, reason: str) -> NoReturn:
    name = tensor.name if isinstance(tensor, Tensor) else repr(tensor)
    raise ScheduleError(f"{primitive} of {name}: {reason}", span=user_span())


def _check_scope(primitive: str, tensor: Tensor, scope: object) -> None:
    if not isinstance(scope, str):
        _fail(primitive, tensor, f"{scope!r} is not the name of a storage scope")


def _current(schedule: Schedule, tensor: Tensor) -> Tensor:
    """The tensor as the schedule computes it now; the user may hold the one from before a step replaced it."""
    stage = schedule.stage_map[tensor.op]
    return stage.op.output(tensor.value_index)


def cache_read(schedule: Schedule, tensor: Tensor, scope: str, readers: Sequence[Operation]) -> Tensor:
    """See ``Schedule.cache_read``."""
    if not isinstance(tensor, Tensor) or tensor not in schedule:
        _fail("cache_read", tensor, "it is not a tensor of this schedule")
    _check_scope("cache_read", tensor, scope)
    if not readers:
        _fail("cache_read", tensor, "name the readers of the copy")
    source = _current(schedule, tensor)
    for reader in readers:
        if reader not in schedule:
            _fail("cache_read", tensor, f"its reader {reader.name} is not part of this schedule")
        if source not in schedule.stage_map[reader].op.input_tensors:
            _fail("cache_read", tensor, f"{reader.name} does not read it")
    step = schedule.trace.begin("cache_read", None, [tensor, scope, tuple(readers)])
    suffix = f".v{source.value_index}" if source.op.num_outputs > 1 else ""
    axes = [
        IterVar(
            Range.from_min_extent(operators.const(0, extent.dtype), extent),
            Var(f"ax{index}", extent.dtype),
            IterVar.DataPar,
        )
        for index, extent in enumerate(source.shape)
    ]
    # Several copies of one tensor in one scope have names of their own: w.shared, w.d.shared, w.d.d.shared.
    taken = {stage.op.name for stage in schedule.stages}
    name = f"{source.op.name}{suffix}"
    while f"{name}.{scope}" in taken:
        name = f"{name}.d"
    copy = ComputeOp(
        f"{name}.{scope}",
        "",
        None,
        axes,
        [ProducerLoad(source, [axis.var for axis in axes])],
        user_span(),
    )
    position = schedule.stages.index(schedule.stage_map[source.op]) + 1
    reader_stages = [schedule.stage_map[reader] for reader in readers]
    stage = schedule.add_stage(copy, position)
    stage.scope = scope
    stage.group = schedule.stage_map[source.op].group
    replaced: dict[Tensor, Tensor] = {}
    for reader_stage in dict.fromkeys(reader_stages):
        operation = reader_stage.op.replace_inputs({source: copy.output(0)})
        for old, new in zip(reader_stage.op.outputs, operation.outputs, strict=True):
            replaced[old] = new
        set_operation(reader_stage, operation)
    replace_dataflow(schedule.stages, replaced)
    schedule.trace.finish(step, [copy.output(0)])
    return copy.output(0)


def cache_write(schedule: Schedule, tensors: Sequence[Tensor], scope: str) -> list[Tensor]:
    """See ``Schedule.cache_write``. A stage whose axes were transformed already gives a cache with the
    transformed layout."""
    first = tensors[0] if tensors else None
    if not isinstance(first, Tensor) or first not in schedule:
        _fail("cache_write", first, "it is not a tensor of this schedule")
    _check_scope("cache_write", first, scope)
    stage = schedule.stage_map[first.op]
    operation = stage.op
    if not isinstance(operation, (ComputeOp, TensorComputeOp)):
        _fail("cache_write", first, f"only a computation can be cached, not {type(operation).__name__}")
    if isinstance(operation, TensorComputeOp) and stage.relations:
        _fail("cache_write", first, "an intrinsic computes it: cache it before its axes are transformed")
    if len(tensors) != operation.num_outputs or any(
        schedule.stage_map.get(one.op) is not stage for one in tensors
    ):
        _fail("cache_write", first, f"name all {operation.num_outputs} outputs of {operation.name} together")
    if any(attributes.bind_thread is not None for attributes in stage.axis_attributes.values()):
        _fail("cache_write", first, "an axis of its stage is bound to a thread already")
    step = schedule.trace.begin("cache_write", None, [tuple(tensors), scope])
    cached: Operation
    if isinstance(operation, TensorComputeOp):
        cached, axes = _cached_intrinsic(operation, f"{operation.name}.{scope}")
        indices: list[PrimExpr] = [axis.var for axis in axes]
    else:
        layout = _Layout(stage, operation)
        cached = ComputeOp(
            f"{operation.name}.{scope}",
            operation.tag,
            operation.attrs,
            layout.axes,
            layout.body,
            operation.span,
        )
        axes, indices = operation.axes, layout.indices
    copies = [ProducerLoad(tensor, indices) for tensor in cached.outputs]
    copying = ComputeOp(operation.name, "", operation.attrs, axes, copies, operation.span)
    position = schedule.stages.index(stage)
    made = schedule.add_stage(cached, position)
    made.scope = scope
    made.group = stage.group
    replaced = dict(zip(operation.outputs, copying.outputs, strict=True))
    set_operation(stage, copying)
    stage.start_from(copying)
    replace_dataflow(schedule.stages, replaced)
    schedule.trace.finish(step, cached.outputs)
    return list(cached.outputs)


def _cached_intrinsic(operation: TensorComputeOp, name: str) -> tuple[TensorComputeOp, tuple[IterVar, ...]]:
    """The intrinsic's computation with loops of its own, and the axes of a copy of all elements."""
    fresh = [
        IterVar(axis.dom, Var(f"{axis.var.name}.c", axis.var.dtype), axis.iter_type)
        for axis in operation.loop_axes
    ]
    values = {old.var: new.var for old, new in zip(operation.loop_axes, fresh, strict=True)}

    def moved(side: Range) -> Range:
        return Range.from_min_extent(substitute_expr(side.min, values), substitute_expr(side.extent, values))

    call = operation.call.replace(
        regions=tuple(tuple(moved(side) for side in region) for region in operation.call.regions),
        scalar_inputs=tuple(substitute_expr(one, values) for one in operation.call.scalar_inputs),
    )
    shape = operation.outputs[0].shape
    cached = TensorComputeOp(name, operation.tag, operation.attrs, fresh, shape, call, operation.span)
    inside = [
        IterVar(axis.dom, Var(axis.var.name, axis.var.dtype), IterVar.DataPar)
        for axis in operation.inner_axes
    ]
    return cached, (*operation.loop_axes, *inside)


class _Layout:
    """The axes and body of a cache that follows the leaves of a stage, and how the copy finds its elements."""

    def __init__(self, stage: Stage, operation: ComputeOp) -> None:
        analyzer = Analyzer()
        ranges = {axis: axis.dom for axis in operation.root_iter_vars if axis.dom is not None}
        pass_down_ranges(stage.relations, ranges, analyzer)
        leaves = [axis for axis in stage.leaf_iter_vars if axis.iter_type == IterVar.DataPar]
        reductions = [axis for axis in stage.leaf_iter_vars if axis.iter_type == IterVar.CommReduce]
        if not stage.relations and set(map(id, reductions)) == set(map(id, operation.reduce_axis)):
            reductions = list(operation.reduce_axis)
        self.axes = [
            IterVar(ranges[axis], Var(f"{axis.var.name}.c", axis.var.dtype), IterVar.DataPar)
            for axis in leaves
        ]
        values: Values = {old: new.var for old, new in zip(leaves, self.axes, strict=True)}
        values.update({axis: axis.var for axis in reductions})
        pass_up_values(stage.relations, ranges, values)
        sets = {
            new.var: IntervalSet.from_range(ranges[old]) for old, new in zip(leaves, self.axes, strict=True)
        }
        sets.update({axis.var: IntervalSet.from_range(ranges[axis]) for axis in reductions})
        for axis in (*leaves, *reductions):
            analyzer.bind(axis.var, ranges[axis])
        for old, new in zip(leaves, self.axes, strict=True):
            analyzer.bind(new.var, ranges[old])
        guards = bound_predicates(
            stage.relations, operation.root_iter_vars, ranges, values, sets, analyzer, check_domain=False
        )
        mapping = {axis.var: analyzer.simplify(values[axis]) for axis in operation.root_iter_vars}
        roots_kept = set(operation.reduce_axis)
        axes = []
        for axis in reductions:
            bounds = ranges[axis]
            start, extent = (substitute_expr(bound, mapping) for bound in (bounds.min, bounds.extent))
            # The range of a reduction may depend on the element.
            same = start is bounds.min and extent is bounds.extent
            domain = bounds if same else Range.from_min_extent(start, extent)
            kept = same and axis in roots_kept
            axes.append(axis if kept else IterVar(domain, axis.var, IterVar.CommReduce))
        self.body = share_reduction([_guarded(value, mapping, axes, guards) for value in operation.body])
        roots: Values = {axis: axis.var for axis in operation.root_iter_vars}
        if stage.relations:
            pass_down_values(stage.relations, ranges, roots)
        self.indices: list[PrimExpr] = [analyzer.simplify(roots[axis]) for axis in leaves]


def _guarded(
    value: PrimExpr, mapping: dict[Var, PrimExpr], reductions: Sequence[IterVar], guards: Sequence[PrimExpr]
) -> PrimExpr:
    """The value in terms of the new axes; elements that the layout pads are zero, or left out of a reduction."""
    condition: PrimExpr = operators.const_true()
    for guard in guards:
        condition = operators.logical_and(condition, guard)
    if isinstance(value, Reduce):
        source = [substitute_expr(one, mapping) for one in value.source]
        init = [substitute_expr(one, mapping) for one in value.init]
        held = operators.logical_and(substitute_expr(value.condition, mapping), condition)
        combiner = value.combiner.map_children(lambda one: substitute_expr(one, mapping))
        return Reduce(combiner, source, reductions, held, value.value_index, init, value.span)
    made = substitute_expr(value, mapping)
    if not guards:
        return made
    return operators.call("if_then_else", made.dtype, [condition, made, operators.make_zero(made.dtype)])
