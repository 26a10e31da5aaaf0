"""Builders: from a module and a target to a file that a runner can load."""

from tilewright.meta_schedule.builder.builder import (
    Builder,
    BuilderInput,
    BuilderResult,
    LocalBuilder,
    PyBuilder,
)

__all__ = [
    "Builder",
    "BuilderInput",
    "BuilderResult",
    "LocalBuilder",
    "PyBuilder",
]
