"""Running sums and products along an axis.

Rows are computed in parallel; rows that lie side by side in memory are computed together, a block at a time.
Narrow floating-point types are accumulated in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import IntImm, PrimExpr
from tilewright.support.dtype import DataType
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.arguments import accumulator_type, product, real_axis
from tilewright.topi.kernel import Rows, loop_kernel

_BLOCK = 256
"""How many rows are computed together: their accumulators stay in the L1 cache."""


def scanop(
    data: Tensor,
    binop: Callable[[PrimExpr, PrimExpr], PrimExpr],
    identity_value: Any,
    op_name: str,
    axis: int | None = None,
    dtype: str | None = None,
    exclusive: bool | None = None,
) -> Tensor:
    """What ``binop`` makes of all elements up to each one along an axis; without an axis, of the flattened tensor.

    ``exclusive`` leaves the element itself out: the first is ``identity_value``.
    """
    shape = [product(data.shape)] if axis is None else list(data.shape)
    position = 0 if axis is None else real_axis(op_name, axis, len(shape))
    kind = DataType(dtype) if dtype else DataType("int32") if data.dtype.is_bool else data.dtype
    wide = accumulator_type(kind)
    rows = Rows(shape, position)
    is_contiguous = isinstance(rows.stride, IntImm) and rows.stride.value == 1
    block = 1 if is_contiguous else _BLOCK

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        blocks = operators.floordiv(rows.stride + (block - 1), block)
        with builder.for_range(0, rows.outer * blocks, name="block", kind="parallel") as number:
            first = builder.let("first", operators.floormod(number, blocks) * block)
            start = builder.let(
                "start", operators.floordiv(number, blocks) * (rows.length * rows.stride) + first
            )
            width: Any = (
                1 if is_contiguous else builder.let("width", operators.minimum(rows.stride - first, block))
            )
            total = builder.allocate(wide, block, name="total", scope="local")
            with builder.for_range(0, width, name="j") as j:
                total[j] = operators.cast(wide, identity_value)
            with (
                builder.for_range(0, rows.length, name="k") as k,
                builder.for_range(0, width, name="j") as j,
            ):
                place = start + k * rows.stride + j
                if exclusive:
                    value = builder.let("value", operators.cast(wide, ins[0][place]))
                    outs[0][place] = operators.cast(kind, total[j])
                    total[j] = binop(total[j], value)
                else:
                    total[j] = binop(total[j], operators.cast(wide, ins[0][place]))
                    outs[0][place] = operators.cast(kind, total[j])

    return loop_kernel(op_name, [data], [(shape, kind)], body)[0]


cumbinop = scanop


def cumsum(
    data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> Tensor:
    """The running sum."""
    return scanop(data, operators.add, 0, "cumsum_generic", axis, dtype, exclusive)


def cumprod(
    data: Tensor, axis: int | None = None, dtype: str | None = None, exclusive: bool | None = None
) -> Tensor:
    """The running product."""
    return scanop(data, operators.multiply, 1, "cumprod_generic", axis, dtype, exclusive)
