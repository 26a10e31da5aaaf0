"""Updates of shared memory belong to one thread, or the program is refused."""

import pytest

from tilewright import tir
from tilewright.script import tir as T
from tilewright.support.errors import LoweringError
from tilewright.tir.transform.lib.bound_updates import require_bound_updates


@T.prim_func
def sums(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (4, 8))
    B = T.match_buffer(b, (4,))
    for i, k in T.grid(4, 8):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = 0.0
            B[vi] = B[vi] + A[vi, vk]
    for i, k in T.grid(4, 8):
        with T.block("A"):
            vi, vk = T.axis.remap("SS", [i, k])
            A[vi, vk] = 1.0


def test_whole_kernels() -> None:
    """Each nest is a kernel of its own: the axes of one say nothing about the other."""
    schedule = tir.Schedule(sums)
    schedule.bind(schedule.get_loops(schedule.get_block("B"))[0], "blockIdx.x")
    for loop, axis in zip(
        schedule.get_loops(schedule.get_block("A")), ("blockIdx.x", "threadIdx.x"), strict=True
    ):
        schedule.bind(loop, axis)
    require_bound_updates(schedule.mod["main"].body)


@pytest.mark.parametrize(("stored", "wrong"), [(0, False), (1, True)])
def test_a_part_that_every_thread_runs(stored: int, wrong: bool) -> None:
    """Storing a value many times is storing it; adding is not."""

    @T.prim_func
    def stores(b: T.handle) -> None:
        B = T.match_buffer(b, (4,))
        for i in T.thread_binding(0, 4, thread="blockIdx.x"):
            B[i] = 1.0
            for j in T.thread_binding(0, 8, thread="threadIdx.x"):
                T.evaluate(j)

    @T.prim_func
    def adds(b: T.handle) -> None:
        B = T.match_buffer(b, (4,))
        for i in T.thread_binding(0, 4, thread="blockIdx.x"):
            B[i] = B[i] + 1.0
            for j in T.thread_binding(0, 8, thread="threadIdx.x"):
                T.evaluate(j)

    function = (stores, adds)[stored]
    if wrong:
        with pytest.raises(LoweringError, match="updates B, which the threads of threadIdx.x share"):
            require_bound_updates(function.body)
    else:
        require_bound_updates(function.body)
