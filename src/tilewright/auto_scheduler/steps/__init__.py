"""The steps of a state: one class each, with TVM 0.8's records."""

from tilewright.auto_scheduler.steps.base import (
    STEPS,
    Step,
    step_from_record,
    steps_from_records,
    steps_to_records,
)
from tilewright.auto_scheduler.steps.loops import (
    AnnotationStep,
    FuseStep,
    PragmaStep,
    ReorderStep,
    StorageAlignStep,
)
from tilewright.auto_scheduler.steps.new_stages import CacheReadStep, CacheWriteStep, RfactorStep
from tilewright.auto_scheduler.steps.place import ComputeAtStep, ComputeInlineStep, ComputeRootStep
from tilewright.auto_scheduler.steps.split import FollowFusedSplitStep, FollowSplitStep, SplitStep

__all__ = [
    "STEPS",
    "AnnotationStep",
    "CacheReadStep",
    "CacheWriteStep",
    "ComputeAtStep",
    "ComputeInlineStep",
    "ComputeRootStep",
    "FollowFusedSplitStep",
    "FollowSplitStep",
    "FuseStep",
    "PragmaStep",
    "ReorderStep",
    "RfactorStep",
    "SplitStep",
    "Step",
    "StorageAlignStep",
    "step_from_record",
    "steps_from_records",
    "steps_to_records",
]
