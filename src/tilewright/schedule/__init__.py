"""Schedulers that construct schedules without search, one folder per kind of device.

A scheduler is registered for a target key ("cpu", "gpu", or the name of a kind). ``schedule(outputs, target)`` uses the
scheduler of the first of the target's keys that has one; a target without any is an error, never another device's
schedule. To support a new device:

    def construct(outputs):                                # the target is the current one
        schedule = te.create_schedule([tensor.op for tensor in outputs])
        ...
        return schedule

    register_scheduler("my_device", Scheduler("my_device", construct))
"""

from __future__ import annotations

from tilewright.schedule import cpu, gpu
from tilewright.schedule.scheduler import Outputs, Scheduler, tags_of
from tilewright.support.errors import TargetError
from tilewright.target.target import Target
from tilewright.te.schedule.schedule import Schedule

_SCHEDULERS: dict[str, Scheduler] = {
    "cpu": cpu.SCHEDULER,
    "gpu": gpu.SCHEDULER,
    "plain_gpu": gpu.PLAIN_SCHEDULER,
}


def register_scheduler(key: str, scheduler: Scheduler, override: bool = False) -> None:
    """Use ``scheduler`` for targets with this key, or of the kind with this name."""
    if key in _SCHEDULERS and not override:
        raise TargetError(f"a scheduler for {key!r} is already registered; pass override=True to replace it")
    _SCHEDULERS[key] = scheduler


def current_target() -> Target:
    """The target to schedule for: the current one, or this machine if none is set."""
    return Target.current() or Target("llvm")


def scheduler_for(target: Target | None = None) -> Scheduler:
    """The scheduler for a target, by default the current one."""
    chosen = current_target() if target is None else target
    for key in (*chosen.keys, chosen.kind.name):
        if key in _SCHEDULERS:
            return _SCHEDULERS[key]
    raise TargetError(
        f"no scheduler for target kind {chosen.kind.name!r}: there are schedulers for the keys "
        f"{', '.join(_SCHEDULERS)}, and the target has {', '.join(chosen.keys) or 'none'}; "
        "tilewright.schedule.register_scheduler adds one"
    )


def schedule(outputs: Outputs, target: Target | None = None) -> Schedule:
    """Schedules the graph that computes these tensors with the scheduler of the target."""
    chosen = current_target() if target is None else target
    return scheduler_for(chosen).schedule(outputs, chosen)


__all__ = [
    "Outputs",
    "Scheduler",
    "cpu",
    "current_target",
    "gpu",
    "register_scheduler",
    "schedule",
    "scheduler_for",
    "tags_of",
]
