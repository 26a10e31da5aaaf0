"""Generators of design spaces: schedules of a module whose sampling steps are open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilewright.ir.module import IRModule
from tilewright.meta_schedule.utils import require_overridden
from tilewright.support.errors import TilewrightError
from tilewright.support.node import Object
from tilewright.tir.schedule.schedule import Schedule

if TYPE_CHECKING:
    from tilewright.meta_schedule.tune_context import TuneContext


class SpaceGenerator(Object):
    """What generates the design spaces of a module."""

    def initialize_with_tune_context(self, tune_context: TuneContext) -> None:
        """Learn what is tuned, before anything is generated."""
        raise NotImplementedError(f"{type(self).__name__} has no method initialize_with_tune_context")

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        """The design spaces of a module: a schedule for each, whose trace can be replayed with other decisions."""
        raise NotImplementedError(f"{type(self).__name__} has no method generate_design_space")


class PySpaceGenerator(SpaceGenerator):
    """The base of generators that programs write."""

    def __init__(self) -> None:
        require_overridden(self, SpaceGenerator, ["initialize_with_tune_context", "generate_design_space"])


class ScheduleFn(PySpaceGenerator):
    """The space that a function spans: it schedules what it is given, or gives schedules of its own."""

    def __init__(self, sch_fn: Callable[[Schedule], Any]) -> None:
        super().__init__()
        self.sch_fn = sch_fn

    def initialize_with_tune_context(self, tune_context: TuneContext) -> None:
        """There is nothing to learn."""

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        schedule = Schedule(mod)
        given = self.sch_fn(schedule)
        if given is None:
            return [schedule]
        if isinstance(given, Schedule):
            return [given]
        if isinstance(given, (list, tuple)) and all(isinstance(one, Schedule) for one in given):
            return list(given)
        raise TilewrightError(
            f"the function of ScheduleFn gives None, a Schedule or a list of them, not {given!r}"
        )


class SpaceGeneratorUnion(PySpaceGenerator):
    """The spaces of several generators."""

    def __init__(self, space_generators: Sequence[SpaceGenerator]) -> None:
        super().__init__()
        self.space_generators = list(space_generators)

    def initialize_with_tune_context(self, tune_context: TuneContext) -> None:
        for one in self.space_generators:
            one.initialize_with_tune_context(tune_context)

    def generate_design_space(self, mod: IRModule) -> list[Schedule]:
        return [space for one in self.space_generators for space in one.generate_design_space(mod)]
