"""Running sums and products of rows.

Where the elements of a row are adjacent, a block computes a row, a tile at a time: each thread a few neighbours, then
the totals of the threads by shuffles and in shared memory, then the sum of all tiles before. Elsewhere neighbouring
threads have neighbouring rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tilewright.ir import operators
from tilewright.ir.expr import IntImm, PrimExpr, Select, Var
from tilewright.support.dtype import DataType
from tilewright.target.target import Target
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.arguments import accumulator_type, product, real_axis
from tilewright.topi.kernel import Rows, loop_kernel
from tilewright.topi.threads.kernel import barrier, each, kernel, most_threads

THREADS: Final = 512
"""Threads of a block, if its row is long enough."""

VECTOR_BITS: Final = 128
"""What a thread has of a tile: one load and one store."""

WARP: Final = 32
"""Threads that can read each other's registers."""

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
    neighbours = max(VECTOR_BITS // max(source.dtype.bits, kind.bits, 8), 1)
    threads = _threads_of_row(rows.length, neighbours)
    tile = threads * neighbours

    def inside(first: PrimExpr, n: Any) -> PrimExpr:
        # Where vectors fill rows, all elements of a thread are inside or none: they are one load and one store.
        is_whole = isinstance(rows.length, IntImm) and rows.length.value % neighbours == 0
        return (first if is_whole else first + n) < rows.length

    with kernel(builder, rows.count, threads) as (row, thread):
        prefixes = _Prefixes(builder, (combine, identity, wide), thread, threads)
        values = builder.allocate(wide, neighbours, name="values", scope="local")
        before = builder.allocate(wide, 1, name="before", scope="local")
        before[0] = identity
        tiles = operators.floordiv(rows.length + (tile - 1), tile)
        with builder.for_range(0, tiles, name="tile") as number:
            first = builder.let("first", number * tile + thread * neighbours)
            start = builder.let("start", row * rows.length + first)
            with builder.for_range(0, neighbours, name="n", kind="unroll") as n:
                values[n] = identity
                with builder.if_scope(inside(first, n)):
                    values[n] = operators.cast(wide, source[start + n])
            with builder.for_range(1, neighbours, name="n", kind="unroll") as n:
                values[n] = combine(values[n - 1], values[n])
            own, everything = prefixes.of(values[neighbours - 1])
            # What all tiles before this one have, and all threads before this one.
            ahead = builder.let("ahead", combine(before[0], own))
            before[0] = combine(before[0], everything)
            with (
                builder.for_range(0, neighbours, name="n", kind="unroll") as n,
                builder.if_scope(inside(first, n)),
            ):
                here = combine(ahead, values[n])
                if exclusive:
                    previous = builder.allocate(wide, 1, name="previous", scope="local")
                    previous[0] = ahead
                    with builder.if_scope(n > 0):
                        previous[0] = combine(ahead, values[operators.maximum(n - 1, 0)])
                    here = previous[0]
                target[start + n] = operators.cast(kind, here)


def _threads_of_row(length: PrimExpr, neighbours: int) -> int:
    """Threads of a block: enough for a row, if its length is known."""
    if not isinstance(length, IntImm):
        return most_threads(THREADS)
    pieces = -(-length.value // neighbours)
    return most_threads(min(max(1 << (pieces - 1).bit_length(), WARP), THREADS))


class _Prefixes:
    """What the threads of a block before each one have together, and what all have.

    Where the threads of a warp can read each other's registers, warps exchange one value each in shared memory;
    elsewhere every thread does, in steps of doubling distance.
    """

    def __init__(
        self, builder: IRBuilder, operation: tuple[Combine, PrimExpr, DataType], thread: Var, threads: int
    ) -> None:
        self.builder, self.thread, self.threads = builder, thread, threads
        self.combine, self.identity, self.dtype = operation
        target = Target.current()
        can_shuffle = target is not None and target.kind.warp_shuffle
        # A register of another size would take several exchanges.
        self.is_by_warps = can_shuffle and self.dtype.bits == 32 and threads % WARP == 0
        count = threads // WARP if self.is_by_warps else 2 * threads
        self.shared = builder.allocate(self.dtype, count, name="totals", scope="shared")
        self.own = builder.allocate(self.dtype, 1, name="own", scope="local")

    def of(self, total: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        """From what each thread has: what the threads before it have, and what all have."""
        return self._by_warps(total) if self.is_by_warps else self._by_steps(total)

    def _by_warps(self, total: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        builder, combine = self.builder, self.combine
        lane = builder.let("lane", operators.floormod(self.thread, WARP))
        warp = builder.let("warp", operators.floordiv(self.thread, WARP))
        mask = builder.let("active_lanes", operators.call("tvm_warp_activemask", "uint32", []))

        def lower(value: PrimExpr, distance: int) -> PrimExpr:
            call = operators.call("tvm_warp_shuffle_up", self.dtype, [mask, value, distance, WARP, WARP])
            return builder.let("lower", call)

        current = builder.let("current", total)
        distance = 1
        while distance < WARP:
            other = lower(current, distance)
            sums = Select(lane >= distance, combine(other, current), current)
            current = builder.let("current", sums)
            distance *= 2
        with builder.if_scope(lane.equal(WARP - 1)):
            self.shared[warp] = current
        other = lower(current, 1)
        barrier(builder)
        self.own[0] = self.identity
        everything = self.identity
        for number in range(self.threads // WARP):
            with builder.if_scope(warp.equal(number)):
                self.own[0] = everything
            everything = builder.let("everything", combine(everything, self.shared[number]))
        with builder.if_scope(lane > 0):
            self.own[0] = combine(self.own[0], other)
        # The next tile writes where this one is read.
        barrier(builder)
        return self.own[0], everything

    def _by_steps(self, total: PrimExpr) -> tuple[PrimExpr, PrimExpr]:
        builder, thread, threads = self.builder, self.thread, self.threads
        read, written = 0, threads
        self.shared[thread] = total
        barrier(builder)
        distance = 1
        while distance < threads:
            self.own[0] = self.shared[thread + read]
            with builder.if_scope(thread >= distance):
                self.own[0] = self.combine(self.shared[thread + (read - distance)], self.own[0])
            self.shared[thread + written] = self.own[0]
            barrier(builder)
            read, written = written, read
            distance *= 2
        everything = builder.let("everything", self.shared[read + threads - 1])
        self.own[0] = self.identity
        with builder.if_scope(thread > 0):
            self.own[0] = self.shared[thread + (read - 1)]
        barrier(builder)
        return self.own[0], everything
