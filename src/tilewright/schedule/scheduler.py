"""The scheduler of a kind of device: a general one for any graph, and special ones for tagged computations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tilewright.support.errors import ScheduleError
from tilewright.target.target import Target
from tilewright.te.schedule.schedule import Schedule
from tilewright.te.tensor import Operation, Tensor

Outputs = Tensor | Sequence[Tensor]

ScheduleFunction = Callable[[Sequence[Tensor]], Schedule]
"""From the outputs of a fused function to a schedule, for the current target."""


class Scheduler:
    """Schedules for targets with a key.

    ``construct`` schedules any graph of tensor expressions. ``special`` has schedules for graphs that contain a
    computation with a tag; the first registered tag that occurs is used.
    """

    def __init__(
        self, key: str, construct: ScheduleFunction, special: Mapping[str, ScheduleFunction] | None = None
    ) -> None:
        self.key = key
        self.construct = construct
        self.special = dict(special or {})

    def register_special(self, tag: str, schedule: ScheduleFunction, override: bool = False) -> None:
        """Use ``schedule`` for graphs with a computation of this tag."""
        if tag in self.special and not override:
            raise ScheduleError(
                f"the {self.key} scheduler already has a schedule for the tag {tag!r}; pass override=True to replace it"
            )
        self.special[tag] = schedule

    def name_for(self, outputs: Outputs) -> str:
        """The name of the schedule that these tensors get: the key, or the key and a tag."""
        tag = self._special_tag(outputs)
        return self.key if tag is None else f"{self.key}, {tag}"

    def schedule(self, outputs: Outputs, target: Target) -> Schedule:
        """Schedules the graph that computes these tensors."""
        tensors = [outputs] if isinstance(outputs, Tensor) else list(outputs)
        tag = self._special_tag(tensors)
        with target:
            return (self.construct if tag is None else self.special[tag])(tensors)

    def _special_tag(self, outputs: Outputs) -> str | None:
        if not self.special:
            return None
        found = tags_of(outputs)
        return next((tag for tag in self.special if tag in found), None)


def tags_of(outputs: Outputs) -> set[str]:
    """The tags of all computations in the graph of these tensors."""
    pending = [tensor.op for tensor in ([outputs] if isinstance(outputs, Tensor) else outputs)]
    seen: set[Operation] = set()
    found: set[str] = set()
    while pending:
        operation = pending.pop()
        if operation in seen:
            continue
        seen.add(operation)
        found.add(getattr(operation, "tag", ""))
        pending += [tensor.op for tensor in operation.input_tensors]
    return found
