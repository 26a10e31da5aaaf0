"""Running sums and products of rows.

Where the elements of a row are adjacent, a block computes a row, a tile at a time: each thread a few neighbours, then
the totals of the threads in shared memory, then the sum of all tiles before. Elsewhere neighbouring threads have
neighbouring rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tilewright.ir import operators
from tilewright.ir.expr import IntImm, PrimExpr
from tilewright.support.dtype import DataType
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.arguments import accumulator_type, product, real_axis
from tilewright.topi.kernel import Rows, loop_kernel
from tilewright.topi.threads.kernel import barrier, each, kernel, most_threads

THREADS: Final = 256
NEIGHBOURS: Final = 8
"""Elements of a thread in a tile."""

Combine = Callable[[PrimExpr, PrimExpr], PrimExpr]


def scan_rows(
    data: Tensor,
    combine: Combine,
    identity: Any,
    name: str,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> Tensor:
    """What ``combine`` makes of all elements up to each one along an axis; without an axis, of the flattened tensor."""
    shape = [product(data.shape)] if axis is None else list(data.shape)
    position = 0 if axis is None else real_axis(name, axis, len(shape))
    kind = DataType(dtype) if dtype else DataType("int32") if data.dtype.is_bool else data.dtype
    wide = accumulator_type(kind)
    rows = Rows(shape, position)
    is_adjacent = isinstance(rows.stride, IntImm) and rows.stride.value == 1

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        scan = _scan_adjacent if is_adjacent else _scan_apart
        scan(
            builder,
            ins[0],
            outs[0],
            rows,
            (combine, operators.cast(wide, identity), wide, kind),
            bool(exclusive),
        )

    return loop_kernel(name, [data], [(shape, kind)], body)[0]


Operation = tuple[Combine, PrimExpr, DataType, DataType]
"""How to combine, what changes nothing, the type to compute in, and the type of the result."""


def _scan_apart(
    builder: IRBuilder,
    source: BufferVar,
    target: BufferVar,
    rows: Rows,
    operation: Operation,
    exclusive: bool,
) -> None:
    combine, identity, wide, kind = operation
    with each(builder, rows.count, most_threads(THREADS)) as row:
        start = builder.let("start", rows.start(row))
        total = builder.allocate(wide, 1, name="total", scope="local")
        total[0] = identity
        with builder.for_range(0, rows.length, name="k") as k:
            place = start + k * rows.stride
            value = builder.let("value", operators.cast(wide, source[place]))
            after = builder.let("after", combine(total[0], value))
            target[place] = operators.cast(kind, total[0] if exclusive else after)
            total[0] = after


def _scan_adjacent(
    builder: IRBuilder,
    source: BufferVar,
    target: BufferVar,
    rows: Rows,
    operation: Operation,
    exclusive: bool,
) -> None:
    combine, identity, wide, kind = operation
    threads = most_threads(THREADS)
    tile = threads * NEIGHBOURS
    with kernel(builder, rows.count, threads) as (row, thread):
        totals = builder.allocate(wide, threads, name="totals", scope="shared")
        values = builder.allocate(wide, NEIGHBOURS, name="values", scope="local")
        before = builder.allocate(wide, 1, name="before", scope="local")
        other = builder.allocate(wide, 1, name="other", scope="local")
        before[0] = identity
        tiles = operators.floordiv(rows.length + (tile - 1), tile)
        with builder.for_range(0, tiles, name="tile") as number:
            first = builder.let("first", number * tile + thread * NEIGHBOURS)
            start = builder.let("start", row * rows.length + first)
            with builder.for_range(0, NEIGHBOURS, name="n", kind="unroll") as n:
                values[n] = identity
                with builder.if_scope(first + n < rows.length):
                    values[n] = operators.cast(wide, source[start + n])
            with builder.for_range(1, NEIGHBOURS, name="n", kind="unroll") as n:
                values[n] = combine(values[n - 1], values[n])
            totals[thread] = values[NEIGHBOURS - 1]
            barrier(builder)
            distance = 1
            while distance < threads:
                other[0] = identity
                with builder.if_scope(thread >= distance):
                    other[0] = totals[thread - distance]
                barrier(builder)
                totals[thread] = combine(other[0], totals[thread])
                barrier(builder)
                distance *= 2
            # What all threads before this one have, and all tiles before this one.
            other[0] = before[0]
            with builder.if_scope(thread > 0):
                other[0] = combine(before[0], totals[thread - 1])
            before[0] = combine(before[0], totals[threads - 1])
            barrier(builder)
            with (
                builder.for_range(0, NEIGHBOURS, name="n", kind="unroll") as n,
                builder.if_scope(first + n < rows.length),
            ):
                here = combine(other[0], values[n])
                if exclusive:
                    previous = builder.allocate(wide, 1, name="previous", scope="local")
                    previous[0] = other[0]
                    with builder.if_scope(n > 0):
                        previous[0] = combine(other[0], values[operators.maximum(n - 1, 0)])
                    here = previous[0]
                target[start + n] = operators.cast(kind, here)
