"""Shuffles: threads of a warp that read one another's values.

A statement with a shuffle runs in three steps, each of which all threads of the warp finish before any starts the next:
publish the value, read the others' values and run the statement, continue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tilewright.ir.expr import Call
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.support.errors import TilewrightError
from tilewright.tir.interpreter.block import IN_STEP
from tilewright.tir.interpreter.expressions import Frame, Run

SHUFFLES = ("tir.tvm_warp_shuffle", "tir.tvm_warp_shuffle_up", "tir.tvm_warp_shuffle_down")


def is_shuffle(node: Any) -> bool:
    """True for a call that reads another thread's value."""
    return isinstance(node, Call) and isinstance(node.op, Op) and node.op.name in SHUFFLES


def shuffles_of(stmt: Any) -> list[Call]:
    """The shuffles in a statement's expressions, inner ones first."""
    return [node for node in post_order(stmt) if isinstance(node, Call) and is_shuffle(node)]


def source_lane(name: str, own: int, operand: int, width: int) -> int:
    """The lane that a shuffle reads: one that is outside its group of lanes reads itself."""
    first = own - own % width
    if name == "tir.tvm_warp_shuffle":
        return first + operand % width
    lane = own - operand if name == "tir.tvm_warp_shuffle_up" else own + operand
    return lane if first <= lane < first + width else own


def compile_shuffle(call: Call, visit: Callable[[Any], Run], thread_number: Run) -> Run:
    """``shuffle(mask, value, lane, width, warp_size)``: the value that the other thread has brought."""
    operand, width, warp_size = (visit(argument) for argument in call.args[2:5])
    name = call.op.name

    def read(frame: Frame) -> Any:
        number = thread_number(frame)
        own = number % warp_size(frame)
        other = number - own + source_lane(name, own, operand(frame), width(frame))
        brought: dict[Any, Any] = frame[0].brought
        if (id(call), number) not in brought:
            raise TilewrightError(
                f"a shuffle must be in the value of a store, a let or an evaluation: {call}"
            )
        # A lane that takes no part has brought nothing; what is read from it is undefined, here one's own value.
        return brought.get((id(call), other), brought[id(call), number])

    return read


def with_shuffles(run: Run, values: list[tuple[Call, Run]], thread_number: Run) -> Run:
    """A statement that runs once every thread has brought its values."""

    def steps(frame: Frame) -> Iterator[Any]:
        number = thread_number(frame)
        for call, value in values:
            frame[0].brought[id(call), number] = value(frame)
            yield IN_STEP
        run(frame)
        yield IN_STEP
        for call, _ in values:
            del frame[0].brought[id(call), number]

    return steps
