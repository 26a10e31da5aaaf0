"""From a schedule with known bounds to a statement: each stage's loops, with the stages that are computed inside
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import IntImm, IterVar, Range, is_const
from tilewright.ir.functor import free_vars
from tilewright.support.recursion import with_recursion_room
from tilewright.te.operation import ComputeOp, PlaceholderOp
from tilewright.te.scan import ScanOp
from tilewright.te.schedule.bounds import BoundInference, attach_path_with_stages
from tilewright.te.schedule.compute_stmt import compute_stmt
from tilewright.te.schedule.context import LoweringContext
from tilewright.te.schedule.cross_thread import cross_thread_stmt, is_cross_thread
from tilewright.te.schedule.owners import in_memory_of_owners
from tilewright.te.schedule.relations import Ranges
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.schedule.stage import LOOP_TYPES, AttachType, Stage
from tilewright.te.schedule.tensorize import is_tensorized, tensorize_stmt
from tilewright.te.tensor import Operation
from tilewright.tir.stmt import NO_OP, AttrStmt, ProducerRealize, Stmt, stmt_seq
from tilewright.tir.storage_rank import scope_name, thread_attribute

Provide = Callable[[Stage, LoweringContext], Stmt]
PROVIDE: dict[type[Operation], Provide] = {}
"""How each class of operation becomes a statement."""

Realize = Callable[[Stage, Ranges], list[list[Range]]]
REALIZE: dict[type[Operation], Realize] = {}
"""The box of each output that a stage needs memory for."""


@with_recursion_room
def schedule_ops(schedule: Schedule, ranges: Ranges, debug_keep_trivial_loop: bool = False) -> Stmt:
    """The statement of a normalised schedule with these ranges."""
    attached: dict[IterVar, list[Stage]] = {}
    roots: list[Stage] = []
    scan_init = _scan_starts(schedule)
    starts = {stage for stages in scan_init.values() for stage in stages}
    scopes = _storage_scopes(schedule, ranges)
    for stage in schedule.stages:
        place = stage.attach_spec()
        if stage.attach_type == AttachType.INLINED_ALREADY or isinstance(stage.op, PlaceholderOp):
            continue
        if stage in starts:
            continue
        if place.is_placed and place.attach_ivar is not None:
            attached.setdefault(place.attach_ivar, []).append(stage)
        elif place.attach_type == AttachType.GROUP_ROOT:
            roots.append(stage)
    context = LoweringContext(
        ranges,
        attached,
        lambda stage, body: _pipeline(stage, body, context),
        lambda stage: PROVIDE[type(stage.op)](stage, context),
        scopes,
        scan_init,
        debug_keep_trivial_loop,
    )
    body: Stmt = NO_OP
    for stage in reversed(roots):
        body = _pipeline(stage, body, context)
    return in_memory_of_owners(body, schedule.stages)


def _scan_starts(schedule: Schedule) -> dict[Operation, list[Stage]]:
    """For each scan, the stages that compute its first steps: they run inside the scan's memory, right
    before its loop."""
    found: dict[Operation, list[Stage]] = {}
    for stage in schedule.stages:
        if isinstance(stage.op, ScanOp):
            found[stage.op] = [schedule.stage_map[tensor.op] for tensor in stage.op.init]
    return found


def _storage_scopes(schedule: Schedule, ranges: Ranges) -> dict[Stage, str]:
    """Where each stage keeps its result: as it says, or by the threads around its place."""
    inference = BoundInference(schedule)
    inference.ranges = ranges
    return {stage: stage.scope or scope_name(inference.storage_rank(stage)) for stage in inference.stages}


def _pipeline(stage: Stage, consumer: Stmt, context: LoweringContext) -> Stmt:
    """The stage, then what reads it, with the memory that both need."""
    producer = PROVIDE[type(stage.op)](stage, context)
    for thread in reversed(stage.env_thread_axes):
        producer = AttrStmt(thread, "thread_extent", context.ranges[thread].extent, producer)
    if stage.double_buffered and _is_refilled(stage, context):
        producer = AttrStmt(stage.op.output(0), "double_buffer_scope", 1, producer)
    body = stmt_seq(producer, consumer)
    boxes = REALIZE.get(type(stage.op), _axis_boxes)(stage, context.ranges)
    for tensor, box in zip(stage.op.outputs, boxes, strict=True):
        body = ProducerRealize(tensor, box, operators.const_true(), body, context.scopes[stage])
        for dimension, factor, offset in _alignments(stage):
            value = operators.call("tvm_tuple", "handle", [dimension, factor, offset])
            body = AttrStmt(tensor, "buffer_dim_align", value, body)
    for thread in _threads_of_memory(stage, boxes):
        extent = context.ranges[thread].extent
        body = AttrStmt(thread, thread_attribute(thread.thread_tag), extent, body)
    return body


def _threads_of_memory(stage: Stage, boxes: list[list[Range]]) -> list[IterVar]:
    """The threads of a stage that do not run around it yet and decide which elements its memory holds."""
    used = {variable for box in boxes for side in box for variable in free_vars(side.min)}
    running = {
        thread
        for axis, owner in attach_path_with_stages(stage)
        for thread in (axis, owner.attributes(axis).bind_thread, *owner.env_thread_axes)
    }
    own = [attributes.bind_thread for attributes in stage.axis_attributes.values()]
    return [one for one in own if one is not None and one not in running and one.var in used]


def _is_refilled(stage: Stage, context: LoweringContext) -> bool:
    """True if a loop fills the stage's memory again and again, one iteration after another: only then is there
    a next block to compute while the last one is read."""
    # The two halves are outside the loop, so their size must not depend on it.
    if not all(isinstance(context.ranges[axis].extent, IntImm) for axis in stage.op.axis):
        return False
    for axis, owner in attach_path_with_stages(stage):
        if owner.attributes(axis).bind_thread is None and not is_const(context.ranges[axis].extent, 1):
            return owner.attributes(axis).iter_type in (*LOOP_TYPES, IterVar.Unrolled)
    return False


def _axis_boxes(stage: Stage, ranges: Ranges) -> list[list[Range]]:
    return [[ranges[axis] for axis in stage.op.axis]] * stage.op.num_outputs


def _alignments(stage: Stage) -> list[tuple[int, int, int]]:
    """Dimension, factor and offset of every axis whose stride was asked to be aligned."""
    found = []
    for dimension, axis in enumerate(stage.op.axis):
        attributes: Any = stage.axis_attributes.get(axis)
        if attributes is not None and attributes.align_factor:
            found.append((dimension, attributes.align_factor, attributes.align_offset))
    return found


def _compute(stage: Stage, context: LoweringContext) -> Stmt:
    if is_tensorized(stage):
        return tensorize_stmt(stage, context)
    if is_cross_thread(stage):
        return cross_thread_stmt(stage, context)
    return compute_stmt(stage, context)


PROVIDE[ComputeOp] = _compute
