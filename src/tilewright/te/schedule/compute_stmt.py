"""The statement that computes a ``ComputeOp``: its loops, its initialisation and its update."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith import Analyzer, IntervalSet
from tilewright.ir import operators
from tilewright.ir.expr import IterVar, PrimExpr, ProducerLoad, Reduce, Var, is_const
from tilewright.ir.functor import substitute_expr, uses_var
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.context import LoweringContext
from tilewright.te.schedule.loop_nest import Nest, guard, make_loop_nest, wrap
from tilewright.te.schedule.relations import Values, bound_predicates, pass_down_marks, pass_up_values
from tilewright.te.schedule.stage import Stage
from tilewright.te.tensor import Operation
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import IfThenElse, LetStmt, ProducerStore, Stmt, stmt_seq

DATA, REDUCTION = 1, 2


@dataclass
class ComputeNest:
    """The loops of a stage, what guards their body, and the values of the root axes in them.

    The first ``common`` loops are around both the initialisation and the update of a reduction.
    """

    main: Nest
    main_values: Values
    main_predicates: list[PrimExpr]
    init: Nest
    init_values: Values
    init_predicates: list[PrimExpr]
    common: int


def reduction_leaves(stage: Stage) -> dict[IterVar, int]:
    """For each axis, whether it comes from data axes, from reduction axes, or from both."""
    marks: dict[IterVar, int] = {axis: DATA for axis in stage.op.axis}
    marks.update({axis: REDUCTION for axis in stage.op.reduce_axis})
    pass_down_marks(stage.relations, marks)
    return marks


def make_compute_nest(stage: Stage, context: LoweringContext) -> ComputeNest:
    """The loops of a computation."""
    operation = stage.op
    main_values: Values = {}
    main = make_loop_nest(
        stage,
        context.ranges,
        main_values,
        keep_trivial=context.keep_trivial,
        attach=context.attached_wrappers,
    )
    pass_up_values(stage.relations, context.ranges, main_values)
    predicates = stage_predicates(stage, context, main_values, frozenset())
    if not operation.reduce_axis:
        return ComputeNest(main, main_values, predicates, [], {}, [], len(main))
    marks = reduction_leaves(stage)
    leaves = stage.leaf_iter_vars
    begin = next((index for index, axis in enumerate(leaves) if marks.get(axis, 0) & REDUCTION), len(leaves))
    skip = frozenset(axis for axis in stage.all_iter_vars if marks.get(axis, 0) & REDUCTION)
    init_values: Values = {}
    init = make_loop_nest(
        stage,
        context.ranges,
        init_values,
        begin=begin,
        fresh_vars=True,
        skip=skip,
        keep_trivial=context.keep_trivial,
    )
    for axis in leaves[:begin]:
        init_values[axis] = main_values[axis]
    pass_up_values(stage.relations, context.ranges, init_values, allow_missing=True)
    init_predicates = stage_predicates(stage, context, init_values, skip, init)
    return ComputeNest(main, main_values, predicates, init, init_values, init_predicates, begin)


def stage_predicates(
    stage: Stage, context: LoweringContext, values: Values, skip: frozenset[IterVar], init: Nest | None = None
) -> list[PrimExpr]:
    """The conditions that keep the loops of a stage inside its required range and its domain."""
    sets = context.loop_sets
    if init is not None:
        fresh: dict[Var, IntervalSet] = {}
        for axis in stage.leaf_iter_vars:
            value = values.get(axis)
            if isinstance(value, Var) and value is not axis.var:
                fresh[value] = IntervalSet.from_range(context.ranges[axis])
                context.analyzer.bind(value, context.ranges[axis], allow_override=True)
        sets = {**sets, **fresh}
    return bound_predicates(
        stage.relations,
        stage.op.root_iter_vars,
        context.ranges,
        values,
        sets,
        context.analyzer,
        unchecked=stage.overcomputed,
        skip=skip,
    )


def compute_stmt(stage: Stage, context: LoweringContext) -> Stmt:
    """The statement that computes a stage whose reduction, if any, runs in loops."""
    operation = stage.op
    assert isinstance(operation, ComputeOp)
    nest = make_compute_nest(stage, context)
    mapping = root_values(operation, nest.main_values, context.analyzer)
    if not operation.reduce_axis:
        stores = [
            ProducerStore(tensor, value, axis_vars(operation))
            for tensor, value in zip(operation.outputs, operation.body, strict=True)
        ]
        body = guarded_body(stage, substitute(stmt_seq(*stores), mapping), nest.main_predicates)
        return wrap(nest.main, body)
    init, update = reduction_stmts(operation)
    init_mapping = root_values(operation, nest.init_values, context.analyzer)
    init = guarded_body(stage, substitute(init, init_mapping), nest.init_predicates)
    update = guarded_body(stage, substitute(update, mapping), nest.main_predicates)
    common, inner = nest.main[: nest.common], nest.main[nest.common :]
    update = wrap(inner, update)
    data = [axis.var for axis in operation.axes]
    if any(axis.dom is not None and uses_var(axis.dom.extent, data) for axis in operation.reduce_axis):
        # How far the reduction runs depends on the element.
        update = substitute(update, mapping)
    return wrap(common, stmt_seq(wrap(nest.init, init), update))


def guarded_body(stage: Stage, body: Stmt, predicates: list[PrimExpr]) -> Stmt:
    """The body under the stage's own store predicate and the bounds."""
    if stage.store_predicate is not None:
        body = IfThenElse(stage.store_predicate, body)
    return guard(predicates, body)


def root_values(operation: Operation, values: Values, analyzer: Analyzer) -> dict[Var, PrimExpr]:
    """Each root variable in terms of the loops."""
    return {
        axis.var: analyzer.simplify(values[axis])
        for axis in operation.root_iter_vars
        if axis in values and values[axis] is not axis.var
    }


def axis_vars(operation: ComputeOp) -> list[PrimExpr]:
    """The indices of the element that is computed."""
    return [axis.var for axis in operation.axes]


def reduction_stmts(operation: ComputeOp) -> tuple[Stmt, Stmt]:
    """The initialisation and the update of a reduction, in terms of the root axes."""
    reduce = operation.body[0]
    assert isinstance(reduce, Reduce)
    indices = axis_vars(operation)
    start = reduce.init or reduce.combiner.identity_element
    init = stmt_seq(
        *[
            ProducerStore(tensor, value, indices)
            for tensor, value in zip(operation.outputs, start, strict=True)
        ]
    )
    current: list[PrimExpr] = [ProducerLoad(tensor, indices) for tensor in operation.outputs]
    update = store_all(operation, combine(reduce, current, list(reduce.source)), indices)
    if not is_const(reduce.condition, 1):
        update = IfThenElse(reduce.condition, update)
    return init, update


def combine(reduce: Reduce, left: list[PrimExpr], right: list[PrimExpr]) -> list[PrimExpr]:
    """The combiner applied to two tuples."""
    mapping = dict(zip((*reduce.combiner.lhs, *reduce.combiner.rhs), (*left, *right), strict=True))
    return [substitute_expr(result, mapping) for result in reduce.combiner.result]


def store_all(operation: ComputeOp, values: list[PrimExpr], indices: list[PrimExpr]) -> Stmt:
    """Store a tuple; all values are computed before the first is stored, because they read what is stored."""
    if len(values) == 1:
        return ProducerStore(operation.outputs[0], values[0], indices)
    names = [
        Var(f"{tensor.op.name}.v{index}.next", tensor.dtype) for index, tensor in enumerate(operation.outputs)
    ]
    body: Stmt = stmt_seq(
        *[ProducerStore(tensor, name, indices) for tensor, name in zip(operation.outputs, names, strict=True)]
    )
    for name, value in zip(reversed(names), reversed(values), strict=True):
        body = LetStmt(name, operators.cast(name.dtype, value), body)
    return body
