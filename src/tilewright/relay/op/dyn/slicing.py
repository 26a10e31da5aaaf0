"""``strided_slice`` with bounds that the program computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.expr import PrimExpr
from tilewright.ir.operators import const, floordiv, maximum, minimum
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.dyn.support import reference_of, unknown, vector_size, whole_numbers
from tilewright.relay.op.shapes import dims, tensors
from tilewright.relay.op.transform.slicing import StridedSliceAttrs
from tilewright.relay.op.transform.support import as_int64, require, shape_program, vector_length
from tilewright.te.tensor import Tensor
from tilewright.tir.op import if_then_else


def _relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of strided_slice", "begin", "end", "strides")
    if found is None:
        return None
    data, begin, end, strides = found
    count = vector_size(begin, "begin")
    if count > len(data.shape):
        raise RelationError(f"strided_slice: {count} begins for {data}")
    if vector_size(end, "end") != count or vector_size(strides, "strides") > count:
        raise RelationError(f"strided_slice: {begin}, {end} and {strides} differ in length")
    return TensorType([*unknown(count), *dims(data)[count:]], data.dtype)


def _compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data, begin, _, strides = inputs
    # How far a slice reaches is known from the shape of the result; the ends are not read.
    return [topi.strided_slice(data, begin, begin, None if attrs.slice_mode == "size" else strides)]


def _held(index: PrimExpr, size: PrimExpr, forwards: PrimExpr) -> PrimExpr:
    """A begin or end counted from the front and held within the axis, which depends on the direction."""
    counted = if_then_else(index < 0, index + size, index)
    zero, one = const(0, "int64"), const(1, "int64")
    low = if_then_else(forwards, zero, -one)
    high = if_then_else(forwards, size, size - one)
    return minimum(maximum(counted, low), high)


def _shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
    rank, count, steps = int(out_ndims[0]), vector_length(inputs[1]), vector_length(inputs[3])
    by_size = attrs.slice_mode == "size"

    def program(builder: Any, ins: Any, outs: Any) -> None:
        for axis in range(rank):
            size = builder.let("size", as_int64(ins[0][axis]))
            if axis >= count:
                outs[0][axis] = size
                continue
            stride = as_int64(ins[3][axis]) if axis < steps and not by_size else const(1, "int64")
            step = builder.let("step", stride)
            require(builder, step != 0, "strided_slice: a stride is zero")
            forwards = step > 0
            begin = builder.let("begin", _held(as_int64(ins[1][axis]), size, forwards))
            given = builder.let("given", as_int64(ins[2][axis]))
            if by_size:
                end = if_then_else(given < 0, size, minimum(begin + given, size))
            else:
                end = _held(given, size, forwards)
            distance = if_then_else(forwards, end - begin, begin - end)
            by = builder.let("by", if_then_else(forwards, step, -step))
            outs[0][axis] = maximum(floordiv(distance + by - 1, by), const(0, "int64"))

    return shape_program("strided_slice_shape", inputs, [rank], program)


def _reference(attrs: Any, data: Any, begin: Any, end: Any, strides: Any) -> Any:
    first, last, steps = (tuple(whole_numbers(one)) for one in (begin, end, strides))
    return reference_of("strided_slice", StridedSliceAttrs(first, last, steps, attrs.slice_mode), data)


define(
    "dyn.strided_slice",
    arguments=("data", "begin", "end", "strides"),
    attrs=StridedSliceAttrs,
    relation=_relation,
    compute=_compute,
    reference=_reference,
    kind=OpPattern.INJECTIVE,
    shape_function=_shape,
    data_dependent=(False, True, True, True),
    description="The part of a tensor between bounds that the program computes.",
)
