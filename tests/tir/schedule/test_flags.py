"""What is known about the blocks of a program."""

from tilewright import tir
from tilewright.script import tir as T
from tilewright.tir.schedule.state import CachedFlags


@T.prim_func
def halves(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (16,))
    B = T.match_buffer(b, (16,))
    C = T.alloc_buffer((16,))
    for i in T.serial(0, 8):
        with T.block("low"):
            vi = T.axis.S(8, i)
            C[vi] = A[vi]
    for i in T.serial(0, 8):
        with T.block("high"):
            vi = T.axis.S(8, i)
            C[vi + 8] = A[vi + 8]
    for i in T.serial(0, 16):
        with T.block("all"):
            vi = T.axis.S(16, i)
            B[vi] = C[vi]


@T.prim_func
def gap(a: T.handle, b: T.handle) -> None:
    A = T.match_buffer(a, (16,))
    B = T.match_buffer(b, (16,))
    C = T.alloc_buffer((16,))
    for i in T.serial(0, 15):
        with T.block("low"):
            vi = T.axis.S(15, i)
            C[vi] = A[vi]
    for i in T.serial(0, 16):
        with T.block("all"):
            vi = T.axis.S(16, i * i)
            B[vi] = C[vi]


def flags(function, name):
    """The flags of a block."""
    schedule = tir.Schedule(function)
    return schedule.state._get_cached_flags(schedule.get_sref(schedule.get_block(name)))


def test_covered_by_several_blocks() -> None:
    """Two blocks that write a half each cover what a third reads."""
    for name in ("root", "low", "all"):
        assert flags(halves, name) == CachedFlags(True, True, True)


def test_gaps_and_squares() -> None:
    """An element that nobody writes, and an axis whose value is no affine map."""
    assert flags(gap, "low") == CachedFlags(True, True, True)
    assert flags(gap, "all") == CachedFlags(False, False, True)
    assert not flags(gap, "root").stage_pipeline
