"""The indices of the elements that are not zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.ir import operators
from tilewright.ir.expr import ExprLike
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import as_extents, shape_text
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import all as all_of
from tilewright.topi.arguments import product
from tilewright.topi.kernel import loop_kernel, scalar
from tilewright.topi.utils import unravel_index


def argwhere(output_shape: Sequence[ExprLike] | Tensor, condition: Tensor) -> Tensor:
    """The index vectors of the elements that are not zero, in row-major order, as rows of an int32 matrix.

    The caller says how many rows there are, by a shape or by a tensor of that shape; no more are written.
    """
    shape = as_extents(output_shape.shape if isinstance(output_shape, Tensor) else output_shape)
    rank = len(condition.shape)
    if len(shape) != 2:
        raise ExpressionError(f"the result of argwhere is a matrix, not {shape_text(shape)}")

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        row = scalar(builder, "int32", "row", 0)
        with builder.for_range(0, product(condition.shape), name="i") as i:
            value = ins[0][i]
            true = operators.not_equal(value, operators.const(0, value.dtype))
            with builder.if_scope(all_of(true, row[0] < shape[0])):
                for axis, index in enumerate(unravel_index(i, condition.shape)):
                    outs[0][row[0] * rank + axis] = operators.cast("int32", index)
                row[0] = row[0] + 1

    return loop_kernel("argwhere", [condition], [(shape, "int32")], body)[0]


def _of_rank(rank: int) -> Callable[[Sequence[ExprLike] | Tensor, Tensor], Tensor]:
    """``argwhere`` for one number of dimensions."""

    def operator(output_shape: Sequence[ExprLike] | Tensor, condition: Tensor) -> Tensor:
        if len(condition.shape) != rank:
            raise ExpressionError(f"hybrid_argwhere_{rank}d does not take {shape_text(condition.shape)}")
        return argwhere(output_shape, condition)

    operator.__name__ = operator.__qualname__ = f"hybrid_argwhere_{rank}d"
    operator.__doc__ = f"``argwhere`` for tensors of {rank} dimensions."
    return operator


hybrid_argwhere_1d = _of_rank(1)
hybrid_argwhere_2d = _of_rank(2)
hybrid_argwhere_3d = _of_rank(3)
hybrid_argwhere_4d = _of_rank(4)
hybrid_argwhere_5d = _of_rank(5)
