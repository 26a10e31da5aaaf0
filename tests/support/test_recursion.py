"""Room for deep recursion."""

import sys
import threading
from typing import Any

import pytest

from tilewright.support.recursion import recursion_room, with_recursion_room


def depth(levels: int) -> int:
    """Recurse this deep."""
    return 0 if levels == 0 else 1 + depth(levels - 1)


def test_deep_recursion_inside() -> None:
    """Within the block a pure-Python recursion of 100,000 levels works."""
    with recursion_room():
        assert depth(100_000) == 100_000


def test_limit_is_restored() -> None:
    """Blocks nest; the outermost restores the interpreter's limit, also after an error."""
    before = sys.getrecursionlimit()
    try:
        with recursion_room(), recursion_room():
            assert sys.getrecursionlimit() >= 1_000_000
            raise KeyError
    except KeyError:
        pass
    assert sys.getrecursionlimit() == before


def test_decorator() -> None:
    """A decorated function runs inside the room and keeps its name."""
    assert with_recursion_room(depth)(50_000) == 50_000
    assert with_recursion_room(depth).__name__ == "depth"


def test_threads_share_the_room() -> None:
    """One thread leaving does not take the room from another."""
    before = sys.getrecursionlimit()
    entered, leave, limits = threading.Event(), threading.Event(), []

    def other() -> None:
        with recursion_room():
            entered.set()
            leave.wait(10)
            limits.append(sys.getrecursionlimit())

    thread = threading.Thread(target=other)
    with recursion_room():
        thread.start()
        assert entered.wait(10)
    leave.set()
    thread.join(10)
    assert limits[0] >= 1_000_000
    assert sys.getrecursionlimit() == before


def test_room_where_somebody_else_evaluates_frames() -> None:
    """PyTorch's Dynamo calls backends with its own evaluation of frames in place, through which calls use C's stack."""
    torch = pytest.importorskip("torch")
    depths = []

    def down(left: int) -> int:
        return 0 if left == 0 else 1 + down(left - 1)

    def backend(graph: Any, example: Any) -> Any:
        with recursion_room():
            depths.append(down(100_000))
        return graph.forward

    made = torch.compile(lambda x: x + 1, backend=backend)(torch.ones(2))
    assert made.tolist() == [2, 2]
    assert depths == [100_000]
