"""Sorting rows by networks of comparisons (bitonic), one block a row, with the row in shared memory.

Where positions are asked for, keys are compared with them, so that equal ones keep their order; a key of at most 32
bits and its position are one number of 64. Numbers are encoded as ``topi.radix`` does: NaN is greater than every
number. Where the threads of a warp can read each other's registers, they compare there what is near, and only
comparisons across warps need shared memory and barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from tilewright.ir import operators
from tilewright.ir.expr import IntImm, PrimExpr, Select, Var
from tilewright.support.dtype import DataType
from tilewright.target.target import Target
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import all as all_of
from tilewright.tir.op import any as any_of
from tilewright.topi.arguments import real_axis
from tilewright.topi.kernel import Rows, loop_kernel
from tilewright.topi.radix import decode, encode, key_type
from tilewright.topi.sort import topk_outputs
from tilewright.topi.threads.kernel import barrier, kernel, most_threads

SHARED_BYTES: Final = 48 * 1024
"""Shared memory that every block may use."""

POSITION_BITS: Final = 32
WARP: Final = 32
SPAN: Final = 2 * WARP
"""Elements that a warp keeps in its registers, two a thread."""

Emit = Callable[[PrimExpr, PrimExpr, PrimExpr], None]
"""(number of the row, place in order, position or key) to what is stored."""


def longest_row(dtype: DataType) -> int:
    """The elements of the longest row that shared memory holds, with their positions."""
    each = max(key_type(dtype).bits // 8, 1) + 4
    return 1 << ((SHARED_BYTES // each).bit_length() - 1)


def sort(data: Tensor, axis: int = -1, is_ascend: int = 1) -> Tensor:
    """The values in order along an axis."""
    rows = Rows(data.shape, real_axis("sort", axis, len(data.shape)))

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        def store(row: PrimExpr, place: PrimExpr, key: PrimExpr) -> None:
            target = rows.start(row) + place * rows.stride
            outs[0][target] = decode(key, data.dtype, bool(is_ascend))

        _sort_rows(builder, ins[0], data.dtype, rows, bool(is_ascend), False, store)

    return loop_kernel("sort", [data], [(data.shape, data.dtype)], body)[0]


def argsort(data: Tensor, axis: int = -1, is_ascend: int = 1, dtype: str = "float32") -> Tensor:
    """The positions of the values in order along an axis; equal values keep their order."""
    rows = Rows(data.shape, real_axis("argsort", axis, len(data.shape)))

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        def store(row: PrimExpr, place: PrimExpr, position: PrimExpr) -> None:
            outs[0][rows.start(row) + place * rows.stride] = operators.cast(dtype, position)

        _sort_rows(builder, ins[0], data.dtype, rows, bool(is_ascend), True, store)

    return loop_kernel("argsort", [data], [(data.shape, dtype)], body)[0]


def topk(
    data: Tensor,
    k: int = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> list[Tensor]:
    """The first k values in order along an axis, their positions, or both."""
    position_of_axis = real_axis("topk", axis, len(data.shape))
    rows = Rows(data.shape, position_of_axis)
    length = rows.length
    wanted: PrimExpr = operators.as_expr(k) if k >= 1 else length
    outputs = topk_outputs(data, position_of_axis, wanted, ret_type, dtype)

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        def store(row: PrimExpr, place: PrimExpr, position: PrimExpr) -> None:
            with builder.if_scope(place < wanted):
                target = rows.start(row, wanted) + place * rows.stride
                if ret_type != "indices":
                    outs[0][target] = ins[0][rows.start(row) + position * rows.stride]
                if ret_type != "values":
                    outs[-1][target] = operators.cast(dtype, position)

        _sort_rows(builder, ins[0], data.dtype, rows, bool(is_ascend), True, store)

    return loop_kernel("topk", [data], outputs, body)


class _Elements:
    """What is sorted: keys, or keys with their positions, as the columns of numbers that are compared in turn."""

    def __init__(self, key: DataType, has_positions: bool) -> None:
        self.key, self.has_positions = key, has_positions
        self.is_packed = has_positions and key.bits <= POSITION_BITS
        packed = [DataType("uint64")] if self.is_packed else [key, DataType("int32")]
        self.columns = packed if has_positions else [key]

    def of(self, key: PrimExpr, position: PrimExpr) -> list[PrimExpr]:
        """The columns of a key at a position."""
        if self.is_packed:
            high = operators.left_shift(
                operators.cast("uint64", key), operators.const(POSITION_BITS, "uint64")
            )
            return [operators.bitwise_or(high, operators.cast("uint64", position))]
        return [key, position] if self.has_positions else [key]

    @staticmethod
    def after(one: Sequence[PrimExpr], other: Sequence[PrimExpr]) -> PrimExpr:
        """True if one element comes after another."""
        if len(one) == 1:
            return one[0] > other[0]
        return any_of(one[0] > other[0], all_of(operators.equal(one[0], other[0]), one[1] > other[1]))


class _Network:
    """Sorts the row of a block: a stage merges parts of twice as many elements as the one before, in steps of which
    each compares elements at half the distance."""

    def __init__(
        self, builder: IRBuilder, elements: _Elements, length: int, thread: Var, threads: int
    ) -> None:
        self.builder, self.elements = builder, elements
        self.thread, self.threads = thread, threads
        self.stages = max(length - 1, 1).bit_length()
        self.length, self.padded = length, 1 << self.stages
        target = Target.current()
        can_shuffle = target is not None and target.kind.warp_shuffle
        self.is_by_warps = can_shuffle and threads % WARP == 0
        self.shared = self._allocate(self.padded, "shared")

    def _allocate(self, count: int, scope: str) -> list[BufferVar]:
        return [
            self.builder.allocate(dtype, count, name=f"{scope}_elements", scope=scope)
            for dtype in self.elements.columns
        ]

    def run(self, load: Callable[[PrimExpr], PrimExpr]) -> None:
        """Leaves the row in order in shared memory; ``load`` is the key at a place."""
        builder = self.builder
        if self.is_by_warps:
            with self._spans() as places:
                registers = self._allocate(2, "local")
                for number, place in enumerate(places):
                    self._load(load, place, registers, operators.const(number))
                for stage in range(SPAN.bit_length() - 1):
                    self._merge_in_warp(places, registers, operators.const(stage), 1 << stage)
                self._move(places, registers, to_shared=True)
        else:
            with builder.for_range(0, self.padded // self.threads, name="turn") as turn:
                place = builder.let("place", turn * self.threads + self.thread)
                self._load(load, place, self.shared, place)
        barrier(builder)
        done = SPAN.bit_length() - 1 if self.is_by_warps else 0
        if self.stages <= done:
            return
        with builder.for_range(done, self.stages, name="stage") as stage:
            with builder.for_range(0, stage + 1 - done, name="step") as step:
                self._merge(
                    stage, builder.let("distance", operators.left_shift(operators.const(1), stage - step))
                )
                barrier(builder)
            if self.is_by_warps:
                with self._spans() as places:
                    registers = self._allocate(2, "local")
                    self._move(places, registers, to_shared=False)
                    self._merge_in_warp(places, registers, stage, WARP)
                    self._move(places, registers, to_shared=True)
                barrier(builder)

    def _load(
        self, load: Callable[[PrimExpr], PrimExpr], place: PrimExpr, into: Sequence[BufferVar], at: PrimExpr
    ) -> None:
        """Reads an element of the row; beyond its end are elements that come last."""
        builder, elements = self.builder, self.elements
        for column, value in zip(into, elements.of(operators.max_value(elements.key), place), strict=True):
            column[at] = value
        with builder.if_scope(place < self.length):
            for column, value in zip(into, elements.of(load(place), place), strict=True):
                column[at] = value

    # ---- in shared memory ----

    def _merge(self, stage: PrimExpr, distance: PrimExpr) -> None:
        """Compares all pairs at a distance."""
        builder = self.builder
        with builder.for_range(0, self.padded // 2 // self.threads, name="turn") as turn:
            pair = builder.let("pair", turn * self.threads + self.thread)
            low_bits = operators.bitwise_and(pair, distance - 1)
            first = builder.let("first", (pair - low_bits) * 2 + low_bits)
            second = builder.let("second", first + distance)
            one = [builder.let("one", column[first]) for column in self.shared]
            other = [builder.let("other", column[second]) for column in self.shared]
            is_after = self.elements.after(one, other)
            descending = _is_descending(first, stage)
            swap = builder.let("swap", Select(descending, operators.logical_not(is_after), is_after))
            for column, here, there in zip(self.shared, one, other, strict=True):
                column[first] = Select(swap, there, here)
                column[second] = Select(swap, here, there)

    # ---- in the registers of a warp ----

    @contextmanager
    def _spans(self) -> Iterator[list[PrimExpr]]:
        """For each span of a warp, the places of a thread's two elements."""
        builder = self.builder
        lane = operators.floormod(self.thread, WARP)
        with builder.for_range(0, self.padded // 2 // self.threads, name="turn") as turn:
            start = turn * (2 * self.threads) + operators.floordiv(self.thread, WARP) * SPAN + lane
            first = builder.let("first", start)
            yield [first, first + WARP]

    def _move(self, places: Sequence[PrimExpr], registers: Sequence[BufferVar], *, to_shared: bool) -> None:
        for shared, own in zip(self.shared, registers, strict=True):
            for number, place in enumerate(places):
                if to_shared:
                    shared[place] = own[number]
                else:
                    own[number] = shared[place]

    def _merge_in_warp(
        self, places: Sequence[PrimExpr], registers: Sequence[BufferVar], stage: PrimExpr, distance: int
    ) -> None:
        """The steps of a stage from a distance down to one."""
        builder = self.builder
        mask = builder.let("active_lanes", operators.call("tvm_warp_activemask", "uint32", []))
        lane = operators.floormod(self.thread, WARP)
        while distance:
            before = [[builder.let("own", column[number]) for column in registers] for number in range(2)]
            for number, place in enumerate(places):
                if distance == WARP:
                    others, is_first = before[1 - number], operators.const(number == 0, "bool")
                else:
                    partner = operators.bitwise_xor(lane, operators.const(distance))
                    others = [
                        builder.let(
                            "other",
                            operators.call("tvm_warp_shuffle", one.dtype, [mask, one, partner, WARP, WARP]),
                        )
                        for one in before[number]
                    ]
                    is_first = operators.equal(operators.bitwise_and(lane, operators.const(distance)), 0)
                takes_first = operators.not_equal(is_first, _is_descending(place, stage))
                # Where the two are equal, it does not matter which one is taken.
                swap = builder.let(
                    "swap", operators.equal(self.elements.after(before[number], others), takes_first)
                )
                for column, own, other in zip(registers, before[number], others, strict=True):
                    column[number] = Select(swap, other, own)
            distance //= 2


def _is_descending(place: PrimExpr, stage: PrimExpr) -> PrimExpr:
    """True if a stage puts the part with a place in descending order, for the next one to merge."""
    bit = operators.bitwise_and(operators.right_shift(place, stage + 1), operators.const(1))
    return operators.not_equal(bit, operators.const(0))


def _sort_rows(
    builder: IRBuilder,
    source: BufferVar,
    dtype: DataType,
    rows: Rows,
    ascending: bool,
    has_positions: bool,
    store: Emit,
) -> None:
    """Sorts every row of a tensor; with positions, both zeros are equal."""
    assert isinstance(rows.length, IntImm)
    length = int(rows.length.value)
    elements = _Elements(key_type(dtype), has_positions)
    pairs = 1 << (max(length - 1, 1).bit_length() - 1)
    threads = most_threads(min(pairs, 1024))
    with kernel(builder, rows.count, threads) as (row, thread):
        network = _Network(builder, elements, length, thread, threads)
        start = builder.let("start", rows.start(row))
        network.run(
            lambda place: encode(source[start + place * rows.stride], ascending, zeros_equal=has_positions)
        )
        with builder.for_range(0, network.padded // threads, name="turn") as turn:
            place = builder.let("place", turn * threads + thread)
            with builder.if_scope(place < length):
                last = network.shared[-1][place]
                store(row, place, operators.cast("int32", last) if has_positions else last)
