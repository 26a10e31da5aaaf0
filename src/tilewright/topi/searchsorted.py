"""Where values belong in sorted sequences."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import known_different, shape_text
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import all as all_of
from tilewright.tir.op import any as any_of
from tilewright.tir.op import isnan
from tilewright.topi.arguments import product
from tilewright.topi.kernel import loop_kernel, scalar


def _less(one: PrimExpr, other: PrimExpr) -> PrimExpr:
    """True if one number comes before the other; NaN comes last."""
    plain = one < other
    if not one.dtype.is_float:
        return plain
    return any_of(plain, all_of(isnan(other), operators.logical_not(isnan(one))))


def searchsorted(
    sorted_sequence: Tensor, values: Tensor, right: bool = False, out_dtype: str = "int64"
) -> Tensor:
    """The position at which each value would keep its sequence sorted: before equal elements, or behind (``right``).

    A one-dimensional sequence is searched for all values; otherwise the last axis of both tensors is searched and the
    others are the same.
    """
    if not sorted_sequence.shape or sorted_sequence.dtype != values.dtype:
        raise ExpressionError(
            f"searchsorted: values of {values.dtype} cannot be searched in {sorted_sequence.dtype} of shape "
            f"{shape_text(sorted_sequence.shape)}"
        )
    shared = len(sorted_sequence.shape) == 1
    leading = sorted_sequence.shape[:-1]
    if not shared and (
        len(values.shape) != len(sorted_sequence.shape)
        or any(known_different(one, other) for one, other in zip(leading, values.shape[:-1], strict=True))
    ):
        raise ExpressionError(
            f"searchsorted: {shape_text(sorted_sequence.shape)} and {shape_text(values.shape)} differ before the last "
            "axis"
        )
    length = sorted_sequence.shape[-1]
    total = product(values.shape)
    per_sequence = total if shared else values.shape[-1]

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        with builder.for_range(0, total, name="i", kind="parallel") as i:
            base = operators.const(0) if shared else operators.floordiv(i, per_sequence) * length
            start = builder.let("start", base)
            value = builder.let("value", ins[1][i])
            low = scalar(builder, "int32", "low", 0)
            high = scalar(builder, "int32", "high", operators.cast("int32", length))
            with builder.while_loop(low[0] < high[0]):
                middle = builder.let("middle", low[0] + operators.floordiv(high[0] - low[0], 2))
                element = builder.let("element", ins[0][start + middle])
                before = operators.logical_not(_less(value, element)) if right else _less(element, value)
                with builder.if_scope(before):
                    low[0] = middle + 1
                with builder.else_scope():
                    high[0] = middle
            outs[0][i] = operators.cast(out_dtype, low[0])

    return loop_kernel("searchsorted", [sorted_sequence, values], [(values.shape, out_dtype)], body)[0]
