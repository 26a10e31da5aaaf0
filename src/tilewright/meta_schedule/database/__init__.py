"""Databases of tuning: which workloads there are, and what their schedules measured."""

from tilewright.meta_schedule.database.database import (
    Database,
    JSONDatabase,
    PyDatabase,
    TuningRecord,
    Workload,
)

__all__ = [
    "Database",
    "JSONDatabase",
    "PyDatabase",
    "TuningRecord",
    "Workload",
]
