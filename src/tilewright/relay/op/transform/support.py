"""Helpers of the definitions of this family: constants from expressions, result shapes, shape programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as AnyDimension
from tilewright.ir.expr import IntImm, PrimExpr, SizeVar
from tilewright.ir.operators import cast, maximum, minimum
from tilewright.relay.expr import Constant, const
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.shapes import Dimension, combine
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.support.errors import ExpressionError
from tilewright.te.operation import compute
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import IRBuilder
from tilewright.tir.stmt import AssertStmt
from tilewright.topi.kernel import Body, loop_kernel
from tilewright.topi.tag import INJECTIVE

Array = np.ndarray[Any, Any]


def constant_list(value: Any) -> list[Any] | None:
    """The numbers of a constant expression, flat; None where it is computed by the program."""
    return value.data.numpy().reshape(-1).tolist() if isinstance(value, Constant) else None


def integers(value: Any, what: str) -> tuple[int, ...]:
    """Integers from a number, a sequence of numbers or a constant expression."""
    given = constant_list(value)
    if given is None:
        given = list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]
    made = []
    for one in given:
        plain = one.value if isinstance(one, IntImm) else one
        if not isinstance(plain, (int, np.integer)):
            raise ExpressionError(f"{what} takes integers, not {one!r}")
        made.append(int(plain))
    return tuple(made)


def is_computed(value: Any) -> bool:
    """True for an expression whose value the program computes: its operator is the dynamic one."""
    return isinstance(value, RelayExpr) and not isinstance(value, Constant)


def as_expression(value: Any, dtype: str = "int64") -> RelayExpr:
    """The argument of a dynamic operator: an expression as it is, numbers as a constant."""
    return value if isinstance(value, RelayExpr) else const(np.asarray(integers(value, "a shape")), dtype)


def constant_shape(kind: Any, what: str) -> tuple[int, ...]:
    """The constant shape of a vector argument's type; an error where its length is not known."""
    extents: list[int] = []
    for extent in kind.shape:
        if not isinstance(extent, IntImm):
            raise RelationError(f"the shape of {what} must be constant, it is {kind}")
        extents.append(extent.value)
    return tuple(extents)


def least(first: Dimension, second: Dimension) -> Dimension:
    """The smaller of two dimensions."""
    return combine(lambda a, b: min(a, b) if isinstance(a, int) else minimum(a, b), first, second)


def greatest(first: Dimension, second: Dimension) -> Dimension:
    """The larger of two dimensions."""
    return combine(lambda a, b: max(a, b) if isinstance(a, int) else maximum(a, b), first, second)


def result_shape(kind: Any) -> list[PrimExpr]:
    """The shape of a result for its computation: a variable, bound when the kernel is called, stands for each
    dimension that is not known before."""
    return [
        SizeVar("any_dim", "int32") if isinstance(extent, AnyDimension) else extent for extent in kind.shape
    ]


def with_extent(tensor: Tensor, axis: int, extent: int) -> Tensor:
    """The tensor with a dimension, which has this size though its type does not say so, as a constant."""
    if isinstance(tensor.shape[axis], IntImm):
        return tensor
    shape = [*tensor.shape[:axis], extent, *tensor.shape[axis + 1 :]]
    made: Tensor = compute(shape, lambda *i: tensor(*i), name="T_known", tag=INJECTIVE)
    return made


def array_type(dtype: str) -> np.dtype[Any]:
    """The NumPy type of elements."""
    return numpy_dtype(DataType(dtype))


def shape_program(name: str, inputs: Sequence[Tensor], lengths: Sequence[int], program: Body) -> list[Tensor]:
    """Shapes that a small loop program (builder, inputs, outputs) computes: an int64 vector for each length."""
    return loop_kernel(name, inputs, [((length,), "int64") for length in lengths], program)


def require(builder: IRBuilder, condition: PrimExpr, message: str) -> None:
    """The program stops with a message where the condition does not hold."""
    builder.emit(lambda body: AssertStmt(condition, message, body))


def as_int64(value: Any) -> PrimExpr:
    """A loaded element for arithmetic on shapes."""
    return cast("int64", value)


def vector_length(tensor: Tensor) -> int:
    """The constant number of elements of a vector or scalar that a shape function reads."""
    total = 1
    for extent in tensor.shape:
        if not isinstance(extent, IntImm):
            raise ExpressionError(f"the number of elements of {tensor} must be constant")
        total *= extent.value
    return total
