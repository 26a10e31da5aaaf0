"""Sorting rows by networks of comparisons (bitonic), one block a row, with the row in shared memory.

Keys are compared with their positions, so that equal ones keep their order. Numbers are encoded as ``topi.radix`` does:
NaN is greater than every number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tilewright.ir import operators
from tilewright.ir.expr import IntImm, PrimExpr, Select
from tilewright.support.dtype import DataType
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

Emit = Callable[[IRBuilder, PrimExpr, PrimExpr, PrimExpr, PrimExpr], None]
"""(builder, number of the row, place in order, key, position) to what is stored."""


def longest_row(dtype: DataType) -> int:
    """The elements of the longest row that shared memory holds, with their positions."""
    each = max(key_type(dtype).bits // 8, 1) + 4
    return 1 << ((SHARED_BYTES // each).bit_length() - 1)


def sort(data: Tensor, axis: int = -1, is_ascend: int = 1) -> Tensor:
    """The values in order along an axis."""
    rows = Rows(data.shape, real_axis("sort", axis, len(data.shape)))

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        def store(made: IRBuilder, row: PrimExpr, place: PrimExpr, key: PrimExpr, position: PrimExpr) -> None:
            target = rows.start(row) + place * rows.stride
            outs[0][target] = decode(key, data.dtype, bool(is_ascend))

        _sort_rows(builder, ins[0], data.dtype, rows, bool(is_ascend), False, store)

    return loop_kernel("sort", [data], [(data.shape, data.dtype)], body)[0]


def argsort(data: Tensor, axis: int = -1, is_ascend: int = 1, dtype: str = "float32") -> Tensor:
    """The positions of the values in order along an axis; equal values keep their order."""
    rows = Rows(data.shape, real_axis("argsort", axis, len(data.shape)))

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        def store(made: IRBuilder, row: PrimExpr, place: PrimExpr, key: PrimExpr, position: PrimExpr) -> None:
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
        def store(made: IRBuilder, row: PrimExpr, place: PrimExpr, key: PrimExpr, position: PrimExpr) -> None:
            with made.if_scope(place < wanted):
                target = rows.start(row, wanted) + place * rows.stride
                if ret_type != "indices":
                    outs[0][target] = ins[0][rows.start(row) + position * rows.stride]
                if ret_type != "values":
                    outs[-1][target] = operators.cast(dtype, position)

        _sort_rows(builder, ins[0], data.dtype, rows, bool(is_ascend), True, store)

    return loop_kernel("topk", [data], outputs, body)


def _sort_rows(
    builder: IRBuilder,
    source: BufferVar,
    dtype: DataType,
    rows: Rows,
    ascending: bool,
    zeros_equal: bool,
    store: Emit,
) -> None:
    assert isinstance(rows.length, IntImm)
    length = int(rows.length.value)
    stages = max(length - 1, 1).bit_length()
    padded = 1 << stages
    threads = most_threads(min(padded // 2, 1024))
    kind = key_type(dtype)
    with kernel(builder, rows.count, threads) as (row, thread):
        keys = builder.allocate(kind, padded, name="keys", scope="shared")
        positions = builder.allocate("int32", padded, name="positions", scope="shared")
        with builder.for_range(0, padded // threads, name="turn") as turn:
            place = builder.let("place", turn * threads + thread)
            keys[place] = operators.max_value(kind)
            positions[place] = place
            with builder.if_scope(place < length):
                value = source[rows.start(row) + place * rows.stride]
                keys[place] = encode(value, ascending, zeros_equal=zeros_equal)
        barrier(builder)
        with (
            builder.for_range(0, stages, name="stage") as stage,
            builder.for_range(0, stage + 1, name="step") as step,
        ):
            distance = builder.let("distance", operators.left_shift(operators.const(1), stage - step))
            with builder.for_range(0, padded // 2 // threads, name="turn") as turn:
                _compare(builder, keys, positions, turn * threads + thread, stage, distance)
            barrier(builder)
        with builder.for_range(0, padded // threads, name="turn") as turn:
            place = builder.let("place", turn * threads + thread)
            with builder.if_scope(place < length):
                store(builder, row, place, keys[place], positions[place])


def _compare(
    builder: IRBuilder,
    keys: BufferVar,
    positions: BufferVar,
    pair: PrimExpr,
    stage: PrimExpr,
    distance: PrimExpr,
) -> None:
    """Puts a pair of elements in the order of its part of the network."""
    number = builder.let("pair", pair)
    low_bits = operators.bitwise_and(number, distance - 1)
    first = builder.let("first", (number - low_bits) * 2 + low_bits)
    second = builder.let("second", first + distance)
    descending = operators.not_equal(
        operators.bitwise_and(operators.right_shift(first, stage + 1), operators.const(1)), operators.const(0)
    )
    one, other = builder.let("one", keys[first]), builder.let("other", keys[second])
    here, there = builder.let("here", positions[first]), builder.let("there", positions[second])
    after = any_of(one > other, all_of(operators.equal(one, other), here > there))
    swap = builder.let("swap", Select(descending, operators.logical_not(after), after))
    keys[first] = Select(swap, other, one)
    keys[second] = Select(swap, one, other)
    positions[first] = Select(swap, there, here)
    positions[second] = Select(swap, here, there)
