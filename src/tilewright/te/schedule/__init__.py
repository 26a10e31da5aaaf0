"""Schedules of tensor expressions, and their lowering to loops."""

from tilewright.ir.container import Map
from tilewright.ir.expr import IterVar, Range
from tilewright.te.schedule import whole_ops as _whole_ops
from tilewright.te.schedule.auto_inline import (
    auto_inline_broadcast,
    auto_inline_elementwise,
    auto_inline_injective,
)
from tilewright.te.schedule.bounds import create_attach_path, infer_bound
from tilewright.te.schedule.dataflow import (
    create_feed_graph,
    create_read_graph,
    post_dfs_order,
    scan_get_body,
)
from tilewright.te.schedule.lowering import schedule_ops
from tilewright.te.schedule.postproc import to_prim_func
from tilewright.te.schedule.relations import Fuse, Rebase, Singleton, Split
from tilewright.te.schedule.scan_fix_point import scan_fix_point_analysis
from tilewright.te.schedule.schedule import Schedule, create_schedule
from tilewright.te.schedule.specialized import SpecializedCondition
from tilewright.te.schedule.stage import Stage

# Names that older programs use for the steps of lowering.
AutoInlineBroadcast = auto_inline_broadcast
AutoInlineElemWise = auto_inline_elementwise
AutoInlineInjective = auto_inline_injective
CreateAttachPath = create_attach_path
CreateFeedGraph = create_feed_graph
CreateReadGraph = create_read_graph
PostDFSOrder = post_dfs_order
ScanFixPointAnalysis = scan_fix_point_analysis
ScanGetBody = scan_get_body
ScheduleOps = schedule_ops
SchedulePostProcToPrimFunc = to_prim_func


def InferBound(schedule: Schedule) -> Map[IterVar, Range]:
    """The range of every axis of a normalised schedule, as a ``Map``."""
    return Map(infer_bound(schedule))


_ = _whole_ops  # registers the operations that work on whole tensors

__all__ = [
    "AutoInlineBroadcast",
    "AutoInlineElemWise",
    "AutoInlineInjective",
    "CreateAttachPath",
    "CreateFeedGraph",
    "CreateReadGraph",
    "Fuse",
    "InferBound",
    "PostDFSOrder",
    "Rebase",
    "ScanFixPointAnalysis",
    "ScanGetBody",
    "Schedule",
    "ScheduleOps",
    "SchedulePostProcToPrimFunc",
    "Singleton",
    "SpecializedCondition",
    "Split",
    "Stage",
    "create_schedule",
    "infer_bound",
    "schedule_ops",
    "to_prim_func",
]
