"""A loop over file descriptors and times, in one thread: what servers, trackers and proxies wait with.

One thread, because a server forks a process for each session, and only a process without threads may fork safely.
"""

from __future__ import annotations

import heapq
import itertools
import select
import time
from collections.abc import Callable

READ = getattr(select, "POLLIN", 1)
WRITE = getattr(select, "POLLOUT", 4)
GONE = getattr(select, "POLLRDHUP", 0)
"""The other side has closed its end, whether or not there is something left to read; 0 where that is unknown."""

Ready = Callable[[int], None]
_LONGEST_WAIT = 60.0


class Timer:
    """Something to be called later."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Calls it never."""
        self._call = None

    def run(self) -> None:
        """Calls it, once."""
        call, self._call = self._call, None
        if call is not None:
            call()


class Loop:
    """Calls what was registered for a descriptor when it is ready, and timers when it is time."""

    def __init__(self) -> None:
        if not hasattr(select, "poll"):
            raise OSError("RPC servers and trackers run on Linux and macOS; this system can only be a client")
        self._poll = select.poll()
        self._ready: dict[int, Ready] = {}
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = itertools.count()
        self._stopped = False

    def watch(self, number: int, events: int, ready: Ready) -> None:
        """Calls ``ready`` with the events of a descriptor; again with other events changes what is waited for."""
        self._ready[number] = ready
        self._poll.register(number, events)

    def forget(self, number: int) -> None:
        """Watches a descriptor no longer; call it before the descriptor is closed."""
        if self._ready.pop(number, None) is not None:
            self._poll.unregister(number)

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Calls something after some seconds."""
        timer = Timer(call)
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), timer))
        return timer

    def stop(self) -> None:
        """Makes ``run`` return."""
        self._stopped = True

    def run(self) -> None:
        """Waits and calls, until ``stop``."""
        while not self._stopped:
            for number, events in self._poll.poll(1000 * self._pause()):
                ready = self._ready.get(number)
                if ready is not None:
                    ready(events)
            while self._timers and self._timers[0][0] <= time.monotonic() and not self._stopped:
                heapq.heappop(self._timers)[2].run()

    def _pause(self) -> float:
        if not self._timers:
            return _LONGEST_WAIT
        return min(_LONGEST_WAIT, max(0.0, self._timers[0][0] - time.monotonic()) + 0.0005)
