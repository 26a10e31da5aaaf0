"""What the threads of one block share (memory, meetings, asynchronous work, barriers), and running them all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter.memory import Pointer

Steps = Iterator[Any]
IN_STEP: Final = "in step"
"""Yielded by a thread that lets the others do a step, too."""


class Stuck:
    """Yielded, again and again the same one, by a thread that cannot go on before another one, or a copy, has done
    something."""


@dataclass
class Meeting:
    """What the threads of a group bring to one execution of a call, and what is computed from it once."""

    values: dict[int, Any] = field(default_factory=dict)
    result: Any = None
    left: int = 0


@dataclass
class Groups:
    """The asynchronous work of one thread: what was started since the last commit, and the groups before that."""

    started: list[Callable[[], None]] = field(default_factory=list)
    committed: deque[list[Callable[[], None]]] = field(default_factory=deque)

    def commit(self) -> None:
        """What was started is a group."""
        self.committed.append(self.started)
        self.started = []

    def finish(self, unfinished: int) -> None:
        """Do all groups but the latest few."""
        while len(self.committed) > unfinished:
            for one in self.committed.popleft():
                one()


@dataclass
class MemoryBarrier:
    """A barrier in shared memory: how many arrivals and bytes its phase waits for, and the parity of the phase."""

    count: int
    pending: int
    missing_bytes: int = 0
    parity: int = 0

    def update(self, arrivals: int, size: int) -> None:
        """Some arrivals, and some bytes that are expected (or, if negative, were copied)."""
        self.pending -= arrivals
        self.missing_bytes += size
        if self.pending < 0:
            raise TilewrightError(f"more than {self.count} threads arrive at a barrier in one phase")
        if self.pending == 0 and self.missing_bytes == 0:
            self.pending, self.parity = self.count, self.parity ^ 1


@dataclass
class NamedBarrier:
    """A barrier that counts the threads that came."""

    arrived: int = 0
    phase: int = 0

    def arrive(self, threads: int) -> None:
        """One thread came."""
        self.arrived += 1
        if self.arrived == threads:
            self.arrived, self.phase = 0, self.phase + 1


class Block:
    """A block while it runs."""

    def __init__(self) -> None:
        self.memory: dict[Any, Pointer] = {}
        self.brought: dict[Any, Any] = {}
        self.visits: dict[Any, int] = {}
        self.meetings: dict[Any, Meeting] = {}
        self.groups: dict[Any, Groups] = {}
        self.barriers: dict[Any, MemoryBarrier] = {}
        self.named: dict[int, NamedBarrier] = {}
        self.engine: deque[Callable[[], None]] = deque()
        """Copies that no thread waits for by itself; they are done as late as possible."""

    def groups_of(self, kind: str, thread: int) -> Groups:
        """The asynchronous work of one kind that a thread has started."""
        return self.groups.setdefault((kind, thread), Groups())

    def barrier_at(self, pointer: Any, what: str) -> MemoryBarrier:
        """The barrier at an address, which must be one."""
        found = self.barriers.get((id(pointer.memory), pointer.byte_offset)) if pointer is not None else None
        if found is None:
            raise TilewrightError(f"{what}: there is no barrier at this address; mbarrier_init makes one")
        return found

    def meet(self, key: Any, thread: int, size: int, value: Any) -> Generator[Any, None, Meeting]:
        """Wait until all threads of this one's group of ``size`` have brought a value; gives the meeting."""
        group, place = divmod(thread, size)
        visit = self.visits.get((key, thread), 0)
        self.visits[key, thread] = visit + 1
        here = (key, group, visit)
        meeting = self.meetings.setdefault(here, Meeting())
        meeting.values[place] = value
        stuck = Stuck()
        while len(meeting.values) < size:
            yield stuck
        meeting.left += 1
        if meeting.left == size:
            del self.meetings[here]
        return meeting


def run_in_step(threads: list[Steps]) -> None:
    """Run threads that say where they are before each statement: only those that are behind all others go on, so that
    threads that took different branches come together again."""
    places = {thread: next(steps, None) for thread, steps in enumerate(threads)}
    while True:
        running = {thread: place for thread, place in places.items() if place is not None}
        if not running:
            return
        first = min(running.values())
        places = running
        for thread, place in running.items():
            if place == first:
                places[thread] = next(threads[thread], None)


def run_block(threads: list[Steps], block: Block) -> None:
    """Run the threads of a block to their end, letting none past a barrier before all have reached it."""
    running = list(range(len(threads)))
    waiting_at: dict[int, Any] = {}
    stuck_at: dict[int, Stuck] = {}
    while running:
        moved = False
        for thread in running:
            if thread in waiting_at:
                continue
            barrier = next(threads[thread], None)
            if isinstance(barrier, Stuck):
                moved = moved or stuck_at.get(thread) is not barrier
                stuck_at[thread] = barrier
                continue
            moved = True
            if barrier is None:
                waiting_at[thread] = None
            elif barrier is not IN_STEP:
                waiting_at[thread] = barrier
        finished = [thread for thread in running if waiting_at.get(thread, IN_STEP) is None]
        running = [thread for thread in running if thread not in finished] if finished else running
        stopped = [waiting_at[thread] for thread in running if thread in waiting_at]
        if running and len(stopped) == len(running):
            if len(running) != len(threads) or any(barrier is not stopped[0] for barrier in stopped):
                raise TilewrightError(
                    f"{len(running)} of the {len(threads)} threads of a block wait at a barrier "
                    "that the others do not reach: "
                    f"{stopped[0]}"
                )
            waiting_at.clear()
        elif not moved and block.engine:
            block.engine.popleft()()
        elif not moved:
            raise TilewrightError(
                f"{len(running)} of the {len(threads)} threads of a block wait for something that never happens: "
                f"threads {', '.join(map(str, running[:8]))}{', ...' if len(running) > 8 else ''}"
            )
