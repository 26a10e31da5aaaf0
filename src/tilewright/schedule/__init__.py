"""Constructed schedulers, one folder a kind of device: every size is computed from the description of the target.

A scheduler belongs to a key of targets ("cpu", "gpu", or the name of a kind). ``schedule(outputs, target)`` takes the
scheduler of the first of the target's keys that has one; a target that has none is an error, never another device's
schedule. A device of one's own:

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

_SCHEDULERS: dict[str, Scheduler] = {"cpu": cpu.SCHEDULER, "gpu": gpu.SCHEDULER}


def register_scheduler(key: str, scheduler: Scheduler, override: bool = False) -> None:
    """Schedule for targets with this key (or of a kind of this name) by ``scheduler``."""
    if key in _SCHEDULERS and not override:
        raise TargetError(f"there is a scheduler for {key!r} already; pass override=True")
    _SCHEDULERS[key] = scheduler


def current_target() -> Target:
    """The target that schedules are made for: the current one; this machine where none is set."""
    return Target.current() or Target("llvm")


def scheduler_for(target: Target | None = None) -> Scheduler:
    """The scheduler of a target, the current one where none is given."""
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
    """The schedule of the graph that leads to these tensors, by the scheduler of the target (see above)."""
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
