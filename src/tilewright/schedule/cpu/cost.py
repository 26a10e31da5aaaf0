"""The cost of an expression per element, and its size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tilewright.ir.expr import Call, Div, FloorDiv, FloorMod, Mod, PrimExpr, ProducerLoad, Select, Var
from tilewright.ir.functor import post_order
from tilewright.ir.intrinsics import DOT_PRODUCTS
from tilewright.schedule.cpu.access import values_of
from tilewright.support.node import Node
from tilewright.te.operation import ComputeOp
from tilewright.te.tensor import Operation

_CHEAP_CALLS: Final = frozenset(
    f"tir.{name}"
    for name in (
        *("abs", "fabs", "floor", "ceil", "trunc", "nearbyint", "fma", "isnan", "isinf", "isfinite"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right"),
        *("if_then_else", "likely", "reinterpret", "pack_word", *DOT_PRODUCTS, "lookup_byte"),
    )
)
_MIDDLING_CALLS: Final = frozenset(f"tir.{name}" for name in ("sqrt", "rsqrt", "round"))

DIVISION: Final = 8
FUNCTION: Final = 20
"""The cost of a division and of a function such as ``exp``, relative to an addition."""


@dataclass(frozen=True)
class Cost:
    """``operations`` per element, and whether the expression selects between values (padding, concatenation)."""

    operations: int
    chooses: bool


def cost_of(operation: ComputeOp) -> Cost:
    """The cost of one element; for a reduction, of one step."""
    seen: set[int] = set()
    pending: list[Node] = list(values_of(operation))
    operations, chooses = 0, False
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        # Index arithmetic is not counted: most of it is hoisted out of the inner loop.
        if isinstance(part, ProducerLoad):
            continue
        operations += _weight(part)
        chooses = chooses or _is_choice(part)
        pending.extend(part.children())
    return Cost(operations, chooses)


def _is_choice(part: Node) -> bool:
    return isinstance(part, Select) or (isinstance(part, Call) and _name(part) == "tir.if_then_else")


def _name(call: Call) -> str:
    return str(getattr(call.op, "name", call.op))


def _weight(part: Node) -> int:
    """What one node costs; constants and variables are free."""
    if isinstance(part, Var) or not part.children():
        return 0
    if isinstance(part, Call):
        name = _name(part)
        if name in _CHEAP_CALLS:
            return 1
        return DIVISION if name in _MIDDLING_CALLS else FUNCTION
    if isinstance(part, (Div, Mod, FloorDiv, FloorMod)):
        return DIVISION
    return 1


def expanded_size(operation: ComputeOp, inlined: Mapping[Operation, int]) -> int:
    """The number of nodes of the expressions as trees, after inlining: that is how lowering walks them."""
    total = 0
    sizes: dict[int, int] = {}
    for value in operation.body:
        for part in post_order(value):
            size = 1 + sum(sizes[id(child)] for child in part.children() if id(child) in sizes)
            if isinstance(part, ProducerLoad):
                size += inlined.get(getattr(part.producer, "op", None), 0)  # type: ignore[arg-type]
            sizes[id(part)] = size
        total += sizes[id(value)]
    return total


def loads_nothing(value: PrimExpr) -> bool:
    """True if an expression has only constants and axes."""
    return not any(isinstance(part, ProducerLoad) for part in post_order(value))
