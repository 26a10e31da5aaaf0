"""The constructed schedule as states, with its own choices and with others: where a search starts from."""

from __future__ import annotations

from itertools import islice
from typing import Any

from tilewright.auto_scheduler.builders import constructed_schedule
from tilewright.auto_scheduler.loop_state import State
from tilewright.auto_scheduler.state_nodes import StateObject
from tilewright.schedule.decisions import Decisions
from tilewright.support.errors import TilewrightError

MOST_SEEDS = 32
_MOST_OF_ONE_CHOICE = 8


def constructed_states(task: Any) -> list[StateObject]:
    """The constructed schedule first, then those that differ from it in one choice. What states cannot express (a
    packed copy that no step makes, say) is left out."""
    found: dict[Any, StateObject] = {}
    usual = Decisions()
    _note(task, usual, found)
    for decision in list(usual.asked.values()):
        others = (value for value in decision.candidates if value != decision.chosen)
        for value in islice(others, _MOST_OF_ONE_CHOICE):
            if len(found) >= MOST_SEEDS:
                return list(found.values())
            _note(task, Decisions({decision.name: value}), found)
    return list(found.values())


def _note(task: Any, decisions: Decisions, found: dict[Any, StateObject]) -> None:
    try:
        with task.target, decisions:
            state = State.from_schedule(constructed_schedule(task), task.compute_dag)
    except TilewrightError:
        # Where the constructed schedule cannot be had, or no longer with this choice, there is nothing to start from.
        return
    if state is not None:
        found.setdefault(state.transform_steps, state.state_object)
