"""Reductions whose axes are bound to threads: the threads combine their values through
``tvm_thread_allreduce``.

Each thread first reduces its own share in loops (if some reduction axes are not bound), then all threads
combine, then every thread has the result and stores it (or only those that a store predicate names).
"""

from __future__ import annotations

from tilewright.ir import operators
from tilewright.ir.expr import IterVar, Load, PrimExpr, Reduce, Var, is_const
from tilewright.ir.type import PointerType, PrimType
from tilewright.te.operation import ComputeOp
from tilewright.te.schedule.compute_stmt import (
    REDUCTION,
    axis_vars,
    combine,
    make_compute_nest,
    reduction_leaves,
    root_values,
)
from tilewright.te.schedule.context import LoweringContext
from tilewright.te.schedule.loop_nest import Nest, guard, wrap
from tilewright.te.schedule.stage import Stage
from tilewright.tir.functor import substitute
from tilewright.tir.stmt import (
    Allocate,
    AttrStmt,
    Evaluate,
    IfThenElse,
    LetStmt,
    ProducerStore,
    Stmt,
    Store,
    stmt_seq,
)


def _bound_reduction(stage: Stage) -> list[IterVar]:
    marks = reduction_leaves(stage)
    return [
        axis
        for axis in stage.leaf_iter_vars
        if marks.get(axis, 0) & REDUCTION and stage.attributes(axis).bind_thread is not None
    ]


def is_cross_thread(stage: Stage) -> bool:
    """True if a reduction axis of the stage is bound to a thread."""
    return bool(stage.op.reduce_axis) and bool(_bound_reduction(stage))


def cross_thread_stmt(stage: Stage, context: LoweringContext) -> Stmt:
    """The statement of a reduction across threads."""
    operation = stage.op
    assert isinstance(operation, ComputeOp)
    reduce = operation.body[0]
    assert isinstance(reduce, Reduce)
    nest = make_compute_nest(stage, context)
    marks = reduction_leaves(stage)
    bound = _bound_reduction(stage)
    first_loop = next(
        (
            position
            for position, axis in enumerate(stage.leaf_iter_vars)
            if marks.get(axis, 0) & REDUCTION
            and stage.attributes(axis).bind_thread is None
            and not is_const(context.ranges[axis].extent, 1)
        ),
        None,
    )
    condition: PrimExpr = reduce.condition
    for predicate in nest.main_predicates:
        condition = operators.logical_and(condition, predicate)
    own: _Own
    if first_loop is None:
        own = _direct(operation, reduce, condition)
        outer = nest.main
    else:
        for axis in stage.leaf_iter_vars[first_loop:]:
            if not marks.get(axis, 0) & REDUCTION or stage.attributes(axis).bind_thread is not None:
                stage.fail(
                    "bind", axis, "it must be outside the reduction loops that are not bound to threads"
                )
        own = _looped(operation, reduce, condition, nest.main[first_loop:])
        outer = nest.main[:first_loop]
    body = _combine_threads(
        stage, operation, reduce, own, [_thread(stage, axis) for axis in bound], nest.init_predicates
    )
    mapping = root_values(operation, nest.main_values, context.analyzer)
    return wrap(outer, substitute(body, mapping))


def _thread(stage: Stage, axis: IterVar) -> Var:
    thread = stage.attributes(axis).bind_thread
    assert thread is not None
    return thread.var


class _Own:
    """The contribution of one thread: its values, whether they count, and the statement that computes them with its
    memory."""

    def __init__(
        self, values: list[PrimExpr], condition: PrimExpr, prologue: list[Stmt], handles: list[Var]
    ) -> None:
        self.values = values
        self.condition = condition
        self.prologue = prologue
        self.handles = handles


def _direct(operation: ComputeOp, reduce: Reduce, condition: PrimExpr) -> _Own:
    return _Own(list(reduce.source), condition, [], [])


def _looped(operation: ComputeOp, reduce: Reduce, condition: PrimExpr, loops: Nest) -> _Own:
    """The thread's share, reduced in loops into private memory."""
    handles = [
        Var(f"{operation.name}.share{index}", PointerType(PrimType(tensor.dtype), "local"))
        for index, tensor in enumerate(operation.outputs)
    ]
    current: list[PrimExpr] = [
        Load(tensor.dtype, handle, 0) for tensor, handle in zip(operation.outputs, handles, strict=True)
    ]
    init = [
        Store(handle, value, 0)
        for handle, value in zip(handles, reduce.combiner.identity_element, strict=True)
    ]
    values = combine(reduce, current, list(reduce.source))
    names = [
        Var(f"{handle.name}.next", tensor.dtype)
        for handle, tensor in zip(handles, operation.outputs, strict=True)
    ]
    update: Stmt = stmt_seq(*[Store(handle, name, 0) for handle, name in zip(handles, names, strict=True)])
    for name, value in zip(reversed(names), reversed(values), strict=True):
        update = LetStmt(name, value, update)
    if not is_const(condition, 1):
        update = IfThenElse(condition, update)
    return _Own(current, operators.const_true(), [*init, wrap(loops, update)], handles)


def _combine_threads(
    stage: Stage,
    operation: ComputeOp,
    reduce: Reduce,
    own: _Own,
    threads: list[Var],
    predicates: list[PrimExpr],
) -> Stmt:
    """All threads combine, then store."""
    results = [
        Var(f"{operation.name}.reduce{index}", PointerType(PrimType(tensor.dtype), "local"))
        for index, tensor in enumerate(operation.outputs)
    ]
    arguments: list[PrimExpr] = [
        operators.const(len(results), "uint32"),
        *own.values,
        own.condition,
        *results,
        *threads,
    ]
    call = operators.call("tvm_thread_allreduce", "handle", arguments)
    reduced = AttrStmt(reduce.combiner, "reduce_scope", operators.const(0, "handle"), Evaluate(call))
    indices = axis_vars(operation)
    stores: Stmt = stmt_seq(
        *[
            ProducerStore(tensor, Load(tensor.dtype, handle, 0), indices)
            for tensor, handle in zip(operation.outputs, results, strict=True)
        ]
    )
    if stage.store_predicate is not None:
        stores = IfThenElse(stage.store_predicate, stores)
    body: Stmt = stmt_seq(*own.prologue, reduced, guard(predicates, stores))
    for handle in (*results, *own.handles):
        element = handle.element_type
        assert element is not None
        body = Allocate(handle, element, [1], operators.const_true(), body)
    return body
