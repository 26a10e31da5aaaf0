"""Programs with marks for other code generators; the target "test" takes what ``supported`` names."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilewright.ir.op import Op
from tilewright.relay.op.annotation import compiler_begin, compiler_end


@contextmanager
def supported(*names: str, target: str = "test") -> Iterator[None]:
    """Within the block the target takes these operators."""
    for name in names:
        Op.get(name).set_attr(f"target.{target}", lambda expr: True)
    try:
        yield
    finally:
        for name in names:
            Op.get(name).reset_attr(f"target.{target}")


def begin(value: Any, target: str = "test") -> Any:
    return compiler_begin(value, target)


def end(value: Any, target: str = "test") -> Any:
    return compiler_end(value, target)
