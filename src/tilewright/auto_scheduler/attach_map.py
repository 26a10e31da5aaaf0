"""Which stages are computed inside which loops of other stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

IterKey = tuple[int, int]
"""A loop: the number of its stage, and its own among the iterators of that stage."""

_NOTHING: Final[Mapping[int, IterKey]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class AttachMap:
    """``stage_to_attach_iter`` has the loop that each placed stage is computed in."""

    stage_to_attach_iter: Mapping[int, IterKey] = field(default_factory=lambda: _NOTHING)

    @property
    def iter_to_attached_stages(self) -> dict[IterKey, list[int]]:
        """The stages that are computed in each loop, in the order they were placed."""
        found: dict[IterKey, list[int]] = {}
        for stage_id, place in self.stage_to_attach_iter.items():
            found.setdefault(place, []).append(stage_id)
        return found

    def attached_to(self, stage_id: int) -> list[int]:
        """The stages that are computed in any loop of a stage."""
        return [stage for stage, place in self.stage_to_attach_iter.items() if place[0] == stage_id]

    def placed(self, stage_id: int, target_stage_id: int, target_iter_id: int) -> AttachMap:
        """With a stage placed in a loop."""
        kept = {stage: place for stage, place in self.stage_to_attach_iter.items() if stage != stage_id}
        return AttachMap({**kept, stage_id: (target_stage_id, target_iter_id)})

    def without(self, stage_id: int) -> AttachMap:
        """With a stage in no loop."""
        if stage_id not in self.stage_to_attach_iter:
            return self
        return AttachMap(
            {stage: place for stage, place in self.stage_to_attach_iter.items() if stage != stage_id}
        )

    def with_iters_moved(self, stage_id: int, moved: Callable[[int], int]) -> AttachMap:
        """With the loops of one stage renumbered."""
        if not any(place[0] == stage_id for place in self.stage_to_attach_iter.values()):
            return self
        return AttachMap(
            {
                stage: (place[0], moved(place[1])) if place[0] == stage_id else place
                for stage, place in self.stage_to_attach_iter.items()
            }
        )

    def with_stages_inserted(self, start: int, count: int = 1) -> AttachMap:
        """With the numbers of all stages from ``start`` on raised."""
        if not self.stage_to_attach_iter:
            return self

        def moved(stage_id: int) -> int:
            return stage_id + count if stage_id >= start else stage_id

        return AttachMap(
            {moved(stage): (moved(place[0]), place[1]) for stage, place in self.stage_to_attach_iter.items()}
        )
