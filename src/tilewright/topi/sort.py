"""Sorting along an axis: values, positions, and the first of either.

Sorting is stable, rows run in parallel. NaN counts as greater than every number: it comes last in ascending order, as
in NumPy, and first in descending order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import IntImm, PrimExpr, SizeVar
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import shape_text
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder, WithScope
from tilewright.tir.op import all as all_of
from tilewright.tir.op import any as any_of
from tilewright.topi.arguments import check_integers, real_axis
from tilewright.topi.kernel import Rows, loop_kernel, scalar
from tilewright.topi.radix import Workspace, decode, encode, key_type, nth_key


def _row_loop(builder: IRBuilder, rows: Rows) -> tuple[bool, WithScope]:
    """The loop over rows, in parallel; a single row is itself sorted in parallel, as loops in parallel do not
    nest. The first value says whether it is."""
    is_single = isinstance(rows.count, IntImm) and rows.count.value == 1
    kind = "serial" if is_single else "parallel"
    return is_single, builder.for_range(0, rows.count, name="row", kind=kind)


def sort(data: Tensor, axis: int = -1, is_ascend: int = 1) -> Tensor:
    """The values in order along an axis."""
    rows = Rows(data.shape, real_axis("sort", axis, len(data.shape)))
    ascending = bool(is_ascend)
    kind = key_type(data.dtype)

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        is_single, loop = _row_loop(builder, rows)
        with loop as row:
            start = builder.let("start", rows.start(row))
            space = Workspace(builder, kind, rows.length, with_positions=False, parallel=is_single)
            with builder.for_range(0, rows.length, name="i") as i:
                value = ins[0][start + i * rows.stride]
                space.put(i, encode(value, ascending, zeros_equal=False), i)
            space.sort(rows.length)
            with builder.for_range(0, rows.length, name="i") as i:
                outs[0][start + i * rows.stride] = decode(
                    space.keys[space.source[0] + i], data.dtype, ascending
                )

    return loop_kernel("sort", [data], [(data.shape, data.dtype)], body)[0]


def argsort(
    data: Tensor,
    valid_count: Tensor | None = None,
    axis: int = -1,
    is_ascend: int = 1,
    dtype: str = "float32",
) -> Tensor:
    """The positions of the values in order along an axis; equal values keep their order.

    With ``valid_count``, one number a row, only that many values at the beginning of the row are sorted: the positions
    behind them are their own.
    """
    rows = Rows(data.shape, real_axis("argsort", axis, len(data.shape)))
    ascending = bool(is_ascend)
    kind = key_type(data.dtype)
    inputs = [data]
    if valid_count is not None:
        check_integers("argsort", "valid_count", valid_count)
        inputs.append(valid_count)

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        is_single, loop = _row_loop(builder, rows)
        with loop as row:
            start = builder.let("start", rows.start(row))
            length = rows.length
            if valid_count is not None:
                given = operators.cast("int32", ins[1][row])
                length = builder.let("length", operators.maximum(operators.minimum(given, rows.length), 0))
            space = Workspace(builder, kind, rows.length, with_positions=True, parallel=is_single)
            with builder.for_range(0, length, name="i") as i:
                value = ins[0][start + i * rows.stride]
                space.put(i, encode(value, ascending, zeros_equal=True), i)
            space.sort(length)
            with builder.for_range(0, length, name="i") as i:
                found = space.position(space.source[0] + i)
                outs[0][start + i * rows.stride] = operators.cast(dtype, found)
            with builder.for_range(length, rows.length, name="i") as i:
                outs[0][start + i * rows.stride] = operators.cast(dtype, i)

    return loop_kernel("argsort", inputs, [(data.shape, dtype)], body)[0]


def topk_outputs(
    data: Tensor, axis: int, wanted: PrimExpr, ret_type: str, dtype: str
) -> list[tuple[Sequence[Any], str]]:
    """The shapes and types of what ``topk`` returns: the values, the indices, or both."""
    shape = [*data.shape[:axis], wanted, *data.shape[axis + 1 :]]
    outputs: list[tuple[Sequence[Any], str]] = []
    if ret_type != "indices":
        outputs.append((shape, data.dtype))
    if ret_type != "values":
        outputs.append((shape, dtype))
    return outputs


def topk(
    data: Tensor,
    k: Any = 1,
    axis: int = -1,
    ret_type: str = "both",
    is_ascend: bool = False,
    dtype: str = "int64",
) -> Any:
    """The first k values in order along an axis, their positions, or both; of equal values the earlier come first.

    A k below 1 means all; where k is a tensor, the result has a new symbolic dimension. ``ret_type`` is ``both`` (a
    list), ``values`` or ``indices``.
    """
    if ret_type not in ("both", "values", "indices"):
        raise ExpressionError(f"topk: ret_type is 'both', 'values' or 'indices', not {ret_type!r}")
    position = real_axis("topk", axis, len(data.shape))
    rows = Rows(data.shape, position)
    wanted = _wanted(k, rows.length, data)
    outputs = topk_outputs(data, position, wanted, ret_type, dtype)

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        with builder.for_range(0, rows.count, name="row", kind="parallel") as row:
            start = builder.let("start", rows.start(row))
            target = builder.let("target", rows.start(row, wanted))
            count = builder.let("count", operators.minimum(wanted, rows.length))
            space = _first_in_order(builder, ins[0], rows, start, wanted, count, bool(is_ascend))
            with builder.for_range(0, count, name="i") as i:
                found = builder.let("position", space.position(space.source[0] + i))
                place = target + i * rows.stride
                if ret_type != "indices":
                    outs[0][place] = ins[0][start + found * rows.stride]
                if ret_type != "values":
                    outs[-1][place] = operators.cast(dtype, found)

    made = loop_kernel("topk", [data], outputs, body)
    return made if ret_type == "both" else made[0]


def _wanted(k: Any, length: PrimExpr, data: Tensor) -> PrimExpr:
    """How many values are requested."""
    if isinstance(k, Tensor):
        # Known at run time: the caller's output has the size.
        return SizeVar("k", "int32")
    count = operators.as_expr(k)
    if isinstance(count, IntImm) and count.value < 1:
        return length
    if isinstance(count, IntImm) and isinstance(length, IntImm) and count.value > length.value:
        raise ExpressionError(
            f"topk: {count.value} values of {length.value} along an axis of {shape_text(data.shape)}"
        )
    return count


def _first_in_order(
    builder: IRBuilder,
    data: BufferVar,
    rows: Rows,
    start: PrimExpr,
    capacity: PrimExpr,
    count: PrimExpr,
    ascending: bool,
) -> Workspace:
    """The first ``count`` keys of a row, sorted: those below the last of them, and as many equal to it as belong."""
    kind = key_type(data.dtype)
    keys = builder.allocate(kind, rows.length, name="all_keys", scope="global")
    with builder.for_range(0, rows.length, name="i") as i:
        keys[i] = encode(data[start + i * rows.stride], ascending, zeros_equal=True)
    last, equal_to_last = nth_key(builder, keys, kind, rows.length, operators.cast("int32", count))
    space = Workspace(builder, kind, capacity, with_positions=True)
    taken = scalar(builder, "int32", "taken", 0)
    with builder.for_range(0, rows.length, name="i") as i:
        key = builder.let("key", keys[i])
        tie = all_of(operators.equal(key, last[0]), equal_to_last[0] > 0)
        with builder.if_scope(all_of(taken[0] < count, any_of(key < last[0], tie))):
            with builder.if_scope(operators.equal(key, last[0])):
                equal_to_last[0] = equal_to_last[0] - 1
            space.put(taken[0], key, i)
            taken[0] = taken[0] + 1
    space.sort(count)
    return space
