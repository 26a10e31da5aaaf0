"""Matrix products. Narrow floating-point types are added up in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import known_different, shape_text
from tilewright.te.operation import reduce_axis
from tilewright.te.tensor import Tensor
from tilewright.tir.reducer import sum as sum_reducer
from tilewright.topi.arguments import accumulator_type, as_ints, real_axis
from tilewright.topi.computed import computed
from tilewright.topi.math import cast
from tilewright.topi.tag import MATMUL


def result_type(name: str, *tensors: Tensor) -> DataType:
    """The type in which the elements of tensors meet."""
    result = tensors[0].dtype
    for tensor in tensors[1:]:
        common = operators.common_type(result, tensor.dtype)
        if common is None:
            raise ExpressionError(f"{name}: {result} and {tensor.dtype} have no common type")
        result = common
    return result


def matmul(a: Tensor, b: Tensor, transp_a: bool = False, transp_b: bool = False) -> Tensor:
    """The product of two matrices, either of which may be given transposed."""
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise ExpressionError(f"matmul takes matrices, not {shape_text(a.shape)} and {shape_text(b.shape)}")
    rows, inner = a.shape[::-1] if transp_a else a.shape
    other_inner, columns = b.shape[::-1] if transp_b else b.shape
    if known_different(inner, other_inner):
        raise ExpressionError(f"matmul: {inner} columns on the left and {other_inner} rows on the right")
    kind = result_type("matmul", a, b)
    wide = accumulator_type(kind)
    k = reduce_axis((0, inner), name="k")

    def element(i: PrimExpr, j: PrimExpr) -> PrimExpr:
        left = a(k.var, i) if transp_a else a(i, k.var)
        right = b(j, k.var) if transp_b else b(k.var, j)
        total: PrimExpr = sum_reducer(operators.cast(wide, left) * operators.cast(wide, right), axis=k)
        return total

    result = computed((rows, columns), element, name="T_matmul", tag=MATMUL)
    return result if wide == kind else cast(result, kind)


def _contracted(axes: Any, a: Tensor, b: Tensor) -> tuple[list[int], list[int]]:
    """The axes of both sides that are summed over, in pairs."""
    if isinstance(axes, (list, tuple)) and len(axes) == 2:
        left = [
            real_axis("tensordot", axis, len(a.shape)) for axis in as_ints("tensordot", "an axis", axes[0])
        ]
        right = [
            real_axis("tensordot", axis, len(b.shape)) for axis in as_ints("tensordot", "an axis", axes[1])
        ]
    else:
        (count,) = as_ints("tensordot", "the number of axes", axes)
        if not 0 <= count <= min(len(a.shape), len(b.shape)):
            raise ExpressionError(
                f"tensordot: {count} axes of {shape_text(a.shape)} and {shape_text(b.shape)}"
            )
        left = list(range(len(a.shape) - count, len(a.shape)))
        right = list(range(count))
    if len(left) != len(right) or len(set(left)) != len(left) or len(set(right)) != len(right):
        raise ExpressionError(f"tensordot: axes {axes} are not pairs of different axes")
    for one, other in zip(left, right, strict=True):
        if known_different(a.shape[one], b.shape[other]):
            raise ExpressionError(
                f"tensordot: axis {one} of {shape_text(a.shape)} and axis {other} of {shape_text(b.shape)} differ"
            )
    return left, right


def tensordot(a: Tensor, b: Tensor, axes: int | Sequence[Any]) -> Tensor:
    """The sum of products over axes: the last so many of ``a`` with the first of ``b``, or a pair of lists."""
    left, right = _contracted(axes, a, b)
    kind = result_type("tensordot", a, b)
    wide = accumulator_type(kind)
    reduced = [reduce_axis((0, a.shape[axis]), name=f"k{number}") for number, axis in enumerate(left)]
    kept_left = [axis for axis in range(len(a.shape)) if axis not in left]
    kept_right = [axis for axis in range(len(b.shape)) if axis not in right]

    def indices(rank: int, contracted: list[int], kept: Sequence[PrimExpr]) -> list[PrimExpr]:
        outer = iter(kept)
        return [
            reduced[contracted.index(axis)].var if axis in contracted else next(outer) for axis in range(rank)
        ]

    def element(*i: PrimExpr) -> PrimExpr:
        one = operators.cast(wide, a(*indices(len(a.shape), left, i[: len(kept_left)])))
        other = operators.cast(wide, b(*indices(len(b.shape), right, i[len(kept_left) :])))
        total: PrimExpr = sum_reducer(one * other, axis=reduced) if reduced else one * other
        return total

    shape = [a.shape[axis] for axis in kept_left] + [b.shape[axis] for axis in kept_right]
    result = computed(shape, element, name="T_tensordot", tag=MATMUL)
    return result if wide == kind else cast(result, kind)
