"""The thread pool as Python sees it: its size, and regions after a fork and from many threads."""

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
from tests.threads import in_threads

from tilewright.runtime import Module, config_threadpool, get_global_func, num_threads


@pytest.fixture(autouse=True)
def restore() -> Iterator[None]:
    """Leaves the pool as it was."""
    before = num_threads()
    yield
    config_threadpool(0, before)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_gives_the_same_result(kernels: Module, threads: int) -> None:
    """The result of a parallel loop does not depend on the number of threads."""
    config_threadpool(0, threads)
    assert num_threads() == threads
    values = np.zeros(1001, dtype="float32")
    kernels["fill"](values)
    np.testing.assert_array_equal(values, np.arange(1001))


def test_global_functions() -> None:
    """The pool is configured through the registry too, under TVM's names."""
    get_global_func("runtime.config_threadpool")(0, 3)
    assert get_global_func("runtime.NumThreads")() == num_threads() == 3


def test_bad_configuration_is_refused() -> None:
    """Nonsense is an error, and the pool stays as it was."""
    before = num_threads()
    with pytest.raises(ValueError, match="affinity mode 9"):
        config_threadpool(9, 1)
    with pytest.raises(ValueError, match="-2 threads"):
        config_threadpool(0, -2)
    assert num_threads() == before


@pytest.mark.parametrize(("setting", "expected"), [("3", 3), ("", None), ("0", None), ("many", None)])
def test_environment_decides_the_number(setting: str, expected: int | None) -> None:
    """TILEWRIGHT_NUM_THREADS is used where it is a positive number, and the affinity mask is respected otherwise."""
    program = "from tilewright.runtime import num_threads; print(num_threads())"
    environment = {**os.environ, "TILEWRIGHT_NUM_THREADS": setting, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) == (
        expected if expected is not None else min(int(done.stdout), len(os.sched_getaffinity(0)))
    )


def test_affinity_mask_limits_the_number() -> None:
    """A process bound to one CPU uses one thread."""
    program = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from tilewright.runtime import num_threads; print(num_threads())"
    )
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"


def test_after_fork(kernels: Module) -> None:
    """A forked child runs parallel loops on threads of its own."""
    config_threadpool(0, 3)
    values = np.zeros(100, dtype="float32")
    kernels["fill"](values)
    child = os.fork()
    if child == 0:
        values[:] = 0
        for _ in range(5):
            kernels["fill"](values)
        os._exit(0 if np.array_equal(values, np.arange(100)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_many_callers(kernels: Module) -> None:
    """Parallel loops started from several threads at once do not disturb each other."""
    config_threadpool(0, 3)
    wrong: list[int] = []

    def work(size: int) -> None:
        values = np.zeros(size, dtype="float32")
        for _ in range(50):
            values[:] = -1
            kernels["fill"](values)
            if not np.array_equal(values, np.arange(size)):
                wrong.append(size)

    in_threads(work, (10, 1000, 5000, 77))
    assert wrong == []
