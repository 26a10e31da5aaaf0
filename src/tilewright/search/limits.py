"""What a process that handles candidates may take: memory, and a life no longer than its parent's."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from pathlib import Path

try:
    import resource
except ImportError:  # Windows has no such limits
    resource = None  # type: ignore[assignment]

_PR_SET_PDEATHSIG = 1


def default_memory(processes: int = 1) -> int:
    """Bytes that each of so many processes may take: together half of what is free."""
    return _available() // 2 // max(processes, 1)


def _available() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 8 << 30


def limit_memory(more_bytes: int) -> None:
    """Let this process take so many bytes beyond those it has; an allocation beyond that fails."""
    if resource is None or not sys.platform.startswith("linux"):
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    wanted = pages * resource.getpagesize() + more_bytes
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))


def end_with_parent() -> None:
    """Have the system kill this process when its parent ends: a candidate that never ends would outlive it."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:  # it ended before
        os._exit(1)
