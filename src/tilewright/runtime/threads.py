"""The thread pool that parallel loops of compiled code run on."""

from __future__ import annotations

from tilewright.runtime.failure import check
from tilewright.runtime.library import LIBRARY
from tilewright.runtime.registry import register_func


@register_func("runtime.NumThreads")
def num_threads() -> int:
    """Threads that a parallel region uses, the caller included."""
    return int(LIBRARY.tilewright_num_threads())


@register_func("runtime.config_threadpool")
def config_threadpool(affinity_mode: int = 0, nthreads: int = 0) -> None:
    """Sets the number of threads (0: the default) and the kind of cores they run on.

    ``affinity_mode`` 1 keeps the workers on the machine's fastest kind of core, -1 on the slowest, 0 on any.
    """
    check(LIBRARY.tilewright_config_threads(affinity_mode, nthreads))
