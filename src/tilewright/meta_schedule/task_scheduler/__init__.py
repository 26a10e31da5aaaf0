"""Task schedulers: which of several tasks gets the next measurements."""

from tilewright.meta_schedule.task_scheduler.task_scheduler import (
    PyTaskScheduler,
    RoundRobin,
    TaskScheduler,
)

__all__ = [
    "PyTaskScheduler",
    "RoundRobin",
    "TaskScheduler",
]
