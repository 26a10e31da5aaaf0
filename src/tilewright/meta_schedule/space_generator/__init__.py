"""Generators of design spaces: schedules of a module whose sampling steps are open."""

from tilewright.meta_schedule.space_generator.space_generator import (
    PySpaceGenerator,
    ScheduleFn,
    SpaceGenerator,
    SpaceGeneratorUnion,
)

__all__ = [
    "PySpaceGenerator",
    "ScheduleFn",
    "SpaceGenerator",
    "SpaceGeneratorUnion",
]
