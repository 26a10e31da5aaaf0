"""Reads stay inside of their buffers, as far as that can be told from the program.

Two rules. A read in a ``Select`` that chooses lane by lane happens in every lane: it must be shown to be inside
whatever the condition says, or be predicated, or happen anyway (``verify_speculated_reads``, after every pass). And a
read whose index consists of loop variables and constants must be inside wherever it happens (``verify_affine_reads``,
where lowering ends): one that is not proved is tried at the ends of the loops and at some places between, and a place
where it is outside is an error. Indices that come from memory are for their operator to check; see
docs/decisions/0009-reads-stay-inside.md.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from tilewright.ir.expr import Broadcast, Call, IntImm, Load, PrimExpr, Select, Var, is_const
from tilewright.support.errors import VerifyError
from tilewright.support.node import Node
from tilewright.support.recursion import recursion_room
from tilewright.tir.analysis.certain_reads import is_among, reads_anyway
from tilewright.tir.analysis.index_value import index_value
from tilewright.tir.analysis.read_bounds import ReadVisitor, parameter_sizes
from tilewright.tir.function import PrimFunc

_TRIES = 12
"""Places that are tried where a read is not proved to be inside."""


def verify_speculated_reads(func: PrimFunc, choices: Sequence[Select]) -> None:
    """Raise ``VerifyError`` where a lane reads memory that it does not ask for and that may be outside.

    ``choices`` are the selections of the function whose condition is a vector.
    """
    exposed = {id(read): select for select in choices for read in _exposed_reads(select)}
    if not exposed:
        return

    def look(visitor: ReadVisitor, read: Load) -> None:
        # Where a function takes plain pointers, nothing says how large their memory is.
        if id(read) in exposed and visitor.size_of(read) is not None and not visitor.is_inside(read):
            raise VerifyError(
                f"{read} happens in every lane of {exposed[id(read)]}, asked for or not, and is not shown to be "
                f"inside of {read.buffer_var.name} (rule: speculated reads are inside)",
                span=read.span,
            )

    ReadVisitor(parameter_sizes(func), look).visit(func.body)


def _exposed_reads(select: Select) -> Iterator[Load]:
    """The reads that the choice makes in all lanes, with no predicate of their own."""
    anyway: list[Load] | None = None
    waiting: list[Node] = [select.true_value, select.false_value]
    seen: set[int] = set()
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Call) and getattr(part.op, "name", "") == "tir.if_then_else":
            if part.args[0].dtype.lanes > 1:
                # Lanes that do not take a branch read nothing in it.
                waiting.append(part.args[0])
                continue
        if isinstance(part, Load) and _always(part.predicate):
            anyway = reads_anyway(select) if anyway is None else anyway
            if not is_among(part, anyway):
                yield part
        waiting.extend(part.children())


def _always(predicate: PrimExpr) -> bool:
    return is_const(predicate.value if isinstance(predicate, Broadcast) else predicate, 1)


def verify_affine_reads(func: PrimFunc) -> None:
    """Raise ``VerifyError`` with an example where a read of loop variables and constants is outside of its buffer."""
    numbers = random.Random(0)

    def look(visitor: ReadVisitor, read: Load) -> None:
        size = visitor.size_of(read)
        if not isinstance(size, IntImm) or visitor.is_inside(read):
            return
        found = _place_outside(visitor, read, size.value, numbers)
        if found is not None:
            values, index = found
            where = "".join(f", {variable.name} = {value}" for variable, value in values.items())
            raise VerifyError(
                f"{read} is element {index} of {read.buffer_var.name}, which has {size.value}{where} "
                "(rule: reads are inside)",
                span=read.span,
            )

    with recursion_room():
        ReadVisitor(parameter_sizes(func), look).visit(func.body)


def _place_outside(
    visitor: ReadVisitor, read: Load, size: int, numbers: random.Random
) -> tuple[dict[Var, int], int] | None:
    """Values of the loops at which the read happens outside, and its index there; None if none was found."""
    for attempt in range(_TRIES):
        values = _loop_values(visitor, attempt, numbers)
        if values is None or not all(index_value(one, values) for one in visitor.conditions):
            continue
        for lane in {0, read.index.dtype.lanes - 1}:
            index = index_value(read.index, values, lane)
            if index is None:
                return None
            if not 0 <= index < size and index_value(read.predicate, values, lane):
                return values, index
    return None


def _loop_values(visitor: ReadVisitor, attempt: int, numbers: random.Random) -> dict[Var, int] | None:
    """A value for every loop around a read: the first ones, the last ones, or any; None where a range is not known or
    empty."""
    values: dict[Var, int] = {}
    for variable, start, extent in visitor.loops:
        first, count = index_value(start, values), index_value(extent, values)
        if first is None or count is None or count <= 0:
            return None
        last = first + count - 1
        values[variable] = (
            (first, last)[attempt]
            if attempt < 2
            else numbers.choice((first, last, numbers.randint(first, last)))
        )
    return values
