"""Sums at indices that are data: a thread for each update, and atomic additions where indices meet.

The order of the additions, and with it the rounding of floating-point sums, differs from run to run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tilewright.ir import operators
from tilewright.ir.expr import PrimExpr
from tilewright.support.dtype import DataType
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.topi.arguments import as_int, product, real_axis
from tilewright.topi.indexing import counted_from_front
from tilewright.topi.kernel import loop_kernel
from tilewright.topi.scatter import inside
from tilewright.topi.threads.kernel import each, most_threads

THREADS: Final = 256

ATOMIC_TYPES: Final = ("float32", "float64", "int32", "int64", "uint32", "uint64")
"""The types with atomic additions."""


def has_atomic_add(dtype: DataType) -> bool:
    """True if the type has atomic additions."""
    return str(dtype) in ATOMIC_TYPES


def _copy(builder: IRBuilder, source: BufferVar, target: BufferVar, count: PrimExpr) -> None:
    with each(builder, count, most_threads(THREADS)) as place:
        target[place] = source[place]


def _add(builder: IRBuilder, target: BufferVar, place: PrimExpr, value: PrimExpr) -> None:
    address = operators.call("address_of", "handle", [target[place]])
    builder.emit(operators.call("atomic_add", value.dtype, [address, value]))


def scatter_add_elements(data: Tensor, indices: Tensor, updates: Tensor, axis: int = 0) -> Tensor:
    """The data with ``updates`` added in the places that ``indices`` names along an axis."""
    position = real_axis("scatter_add", axis, len(data.shape))

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        _copy(builder, ins[0], outs[0], product(data.shape))
        with each(builder, product(indices.shape), most_threads(THREADS)) as number:
            rest: PrimExpr = number
            offset: PrimExpr = operators.const(0)
            stride: PrimExpr = operators.const(1)
            given = builder.let("given", ins[1][number])
            index = builder.let("index", counted_from_front(given, data.shape[position]))
            for dimension in range(len(data.shape) - 1, -1, -1):
                own = operators.floormod(rest, indices.shape[dimension])
                rest = operators.floordiv(rest, indices.shape[dimension])
                chosen = operators.cast("int32", index) if dimension == position else own
                offset = offset + chosen * stride
                stride = stride * data.shape[dimension]
            with builder.if_scope(inside(index, data.shape[position])):
                _add(builder, outs[0], offset, ins[2][number])

    return loop_kernel("scatter_add", [data, indices, updates], [(data.shape, data.dtype)], body)[0]


def scatter_nd_add(data: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """The data with slices of ``updates`` added at index vectors, which are along the first axis of ``indices``."""
    depth = as_int("scatter_nd", "the first dimension of the indices", indices.shape[0])
    places, slice_size = product(indices.shape[1:]), product(data.shape[depth:])

    def body(builder: IRBuilder, ins: Sequence[BufferVar], outs: Sequence[BufferVar]) -> None:
        _copy(builder, ins[0], outs[0], product(data.shape))
        with each(builder, places * slice_size, most_threads(THREADS)) as number:
            place = builder.let("place", operators.floordiv(number, slice_size))
            offset: PrimExpr = operators.const(0)
            valid: PrimExpr = operators.const(True)
            for dimension in range(depth):
                given = ins[1][place + dimension * places]
                index = builder.let("index", counted_from_front(given, data.shape[dimension]))
                valid = operators.logical_and(valid, inside(index, data.shape[dimension]))
                offset = offset * data.shape[dimension] + operators.cast("int32", index)
            target = offset * slice_size + operators.floormod(number, slice_size)
            with builder.if_scope(valid):
                _add(builder, outs[0], target, ins[2][number])

    return loop_kernel("scatter_nd", [data, indices, updates], [(data.shape, data.dtype)], body)[0]
