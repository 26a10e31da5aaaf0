"""Work in parallel processes.

``run_in_processes(work, count)`` runs ``work(i)`` for every ``i``, each in one of several children of this process. A
child is a fork: it has everything that this process has, and what it leaves behind are files. Nothing is pickled.
"""

from __future__ import annotations

import os
import struct
import sys
import warnings
from collections.abc import Callable

from tilewright.support.options import compile_processes


def can_fork() -> bool:
    """True where children can be made that go on with this process' memory."""
    return hasattr(os, "fork") and sys.platform.startswith("linux")


def run_in_processes(work: Callable[[int], None], count: int, processes: int | None = None) -> list[int]:
    """Run ``work(i)`` for ``i`` below ``count``; gives those that are not done, for the caller to do itself.

    That is all of them where one process is to be used or there is no fork, and otherwise those that failed: their
    errors show when the caller tries.
    """
    workers = min(processes or compile_processes(), count)
    if workers <= 1 or not can_fork():
        return list(range(count))
    jobs_read, jobs_write = os.pipe()
    done_read, done_write = os.pipe()
    children = [_child(work, jobs_read, jobs_write, done_read, done_write) for _ in range(workers)]
    os.close(jobs_read)
    os.close(done_write)
    try:
        # A pipe takes whole records up to its capacity; children read as many bytes as a record has.
        for job in range(count):
            os.write(jobs_write, struct.pack("<i", job))
    finally:
        os.close(jobs_write)
    finished = set()
    while record := os.read(done_read, 4):
        finished.add(struct.unpack("<i", record)[0])
    os.close(done_read)
    for child in children:
        os.waitpid(child, 0)
    return [job for job in range(count) if job not in finished]


def _child(
    work: Callable[[int], None], jobs_read: int, jobs_write: int, done_read: int, done_write: int
) -> int:
    """Fork; the child takes jobs until there are none, and reports those that it finished."""
    with warnings.catch_warnings():
        # The runtime's own threads do not run Python; the child neither uses nor joins them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.close(jobs_write)
        os.close(done_read)
        while record := os.read(jobs_read, 4):
            job = struct.unpack("<i", record)[0]
            try:
                work(job)
            except Exception:  # noqa: BLE001 - the parent tries again and meets it
                continue
            os.write(done_write, record)
        status = 0
    finally:
        # Leave at once: nothing of the parent's (files, exit handlers, threads) is the child's to clean up.
        os._exit(status)
