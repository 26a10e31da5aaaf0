"""The different values of a vector."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import shape_text
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import any as any_of
from tilewright.topi.kernel import fill, loop_kernel, scalar
from tilewright.topi.radix import Workspace, encode, key_type


def unique(data: Tensor, is_sorted: bool = True, return_counts: bool = False) -> list[Tensor]:
    """The different values of a vector, in ascending order or in that of their first appearance.

    Returns the values, the position where each first appears, for every element the number of its value, how many
    values there are (a vector of one), and on request how often each appears. Values, positions and counts have the
    length of the data; what lies behind the number of values is zero.
    """
    if len(data.shape) != 1:
        raise ExpressionError(f"unique takes a vector, not {shape_text(data.shape)}")
    length = data.shape[0]
    outputs: list[tuple[Sequence[PrimExpr], str]] = [
        ((length,), data.dtype),
        ((length,), "int32"),
        ((length,), "int32"),
        ((operators.const(1),), "int32"),
    ]
    if return_counts:
        outputs.append(((length,), "int32"))

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        values, firsts, numbers, total = outs[:4]
        counts = outs[4] if return_counts else None
        for output, dtype in [(values, data.dtype), (firsts, "int32")] + [
            (each, "int32") for each in outs[4:]
        ]:
            fill(builder, output, length, operators.const(0, dtype))
        groups = _groups(builder, ins[0], numbers, length)
        rename = None if is_sorted else _order_of_appearance(builder, numbers, length, groups)
        with builder.for_range(0, length, name="i") as step:
            # From the back, so that the first appearance is what remains.
            i = builder.let("back", length - 1 - step)
            number = builder.let("number", numbers[i] if rename is None else rename[numbers[i]])
            numbers[i] = number
            values[number] = ins[0][i]
            firsts[number] = operators.cast("int32", i)
            if counts is not None:
                counts[number] = counts[number] + 1
        total[0] = groups[0]

    return loop_kernel("unique", [data], outputs, body)


def _groups(builder: IRBuilder, data: BufferVar, numbers: BufferVar, length: PrimExpr) -> BufferVar:
    """Write for every element the number of its value in ascending order; returns how many there are."""
    groups = scalar(builder, "int32", "groups", 0)
    space = Workspace(builder, key_type(data.dtype), length, with_positions=True)
    with builder.for_range(0, length, name="i") as i:
        space.put(i, encode(data[i], ascending=True, zeros_equal=True), i)
    space.sort(length)
    with builder.for_range(0, length, name="i") as i:
        place = builder.let("place", space.source[0] + i)
        previous = operators.maximum(place - 1, 0)
        new = any_of(operators.equal(i, 0), operators.not_equal(space.keys[place], space.keys[previous]))
        with builder.if_scope(new):
            groups[0] = groups[0] + 1
        numbers[space.position(place)] = groups[0] - 1
    return groups


def _order_of_appearance(
    builder: IRBuilder, numbers: BufferVar, length: PrimExpr, groups: BufferVar
) -> BufferVar:
    """From the number of a value in ascending order to its number in order of appearance."""
    rename = builder.allocate("int32", length, name="rename", scope="global")
    seen = scalar(builder, "int32", "seen", 0)
    fill(builder, rename, groups[0], -1)
    with builder.for_range(0, length, name="i") as i:
        number = builder.let("number", numbers[i])
        with builder.if_scope(rename[number] < 0):
            rename[number] = seen[0]
            seen[0] = seen[0] + 1
    return rename
