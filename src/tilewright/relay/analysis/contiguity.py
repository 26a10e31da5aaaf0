"""Which results have the same memory layout as their arguments: a contiguous part of one argument, or several arguments
one after the other.

Such a result needs no kernel: it is read from the argument's memory, or its parts are written directly into the
result's memory. All tensors here are compact and row-major.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType, is_dynamic
from tilewright.ir.type import TupleType, Type
from tilewright.relay.expr import Call, Tuple, TupleGetItem, Var
from tilewright.relay.function import Function
from tilewright.relay.op.shapes import normal_axis
from tilewright.relay.op.transform.slicing import python_slices
from tilewright.tir.data_layout import Layout

LAUNCH_BYTES = 1 << 14
"""The bytes that could be copied in the time in which a kernel starts."""

_JOINING = ("concatenate", "stack")


def is_contiguous_join(expr: RelayExpr) -> bool:
    """True of a concatenation or stack whose operands, each in one piece, follow one another in the result."""
    if not isinstance(expr, Call) or not isinstance(expr.op, Op) or expr.op.name not in _JOINING:
        return False
    result, fields = expr.checked_type, expr.args[0].checked_type
    if not isinstance(result, TensorType) or not isinstance(fields, TupleType):
        return False
    if is_dynamic(result) or is_dynamic(fields):
        return False
    attrs: Any = expr.attrs
    shape = result.concrete_shape
    outer = shape[: normal_axis(attrs.axis, len(shape))]
    return all(extent == 1 for extent in outer) and 0 not in shape


def joined_parameters(function: Function) -> list[int] | None:
    """The tensors among a primitive function's parameters that its result is, one after the other; None if it does
    anything but join them, or they do not follow one another in memory."""
    body = function.body
    if not is_contiguous_join(body):
        return None
    assert isinstance(body, Call)
    operands = body.args[0]
    if operands is function.params[0]:
        return list(range(len(operands.checked_type.fields)))
    if not isinstance(operands, Tuple) or not all(
        isinstance(parameter.checked_type, TensorType) for parameter in function.params
    ):
        return None
    positions = {parameter: position for position, parameter in enumerate(function.params)}
    found = [positions.get(field) for field in operands.fields if isinstance(field, Var)]
    known = [position for position in found if position is not None]
    return known if len(known) == len(operands.fields) else None


def part_offsets(call: Call) -> list[int] | None:
    """Where in the first argument the results of an operator begin, in elements, if each is one piece of it in the
    same order; None for other operators."""
    if not isinstance(call.op, Op) or not call.args:
        return None
    data, results = call.args[0].checked_type, _tensors(call.checked_type)
    if not isinstance(data, TensorType) or is_dynamic(data) or results is None:
        return None
    if any(is_dynamic(one) or one.dtype != data.dtype for one in results):
        return None
    attrs: Any = call.attrs
    shape = data.concrete_shape
    if call.op.get_attr("TNonComputational"):
        return [0]
    if any(0 in one.concrete_shape for one in results):
        return None
    if call.op.name == "transpose":
        axes = attrs.axes or tuple(reversed(range(len(shape))))
        moved = [normal_axis(axis, len(shape)) for axis in axes]
        moved = [axis for axis in moved if shape[axis] != 1]
        return [0] if moved == sorted(moved) else None
    if call.op.name == "layout_transform":
        layouts = Layout(attrs.src_layout), Layout(attrs.dst_layout)
        same_count = math.prod(results[0].concrete_shape) == math.prod(shape)
        return [0] if same_count and _one_axis_alone(layouts, shape) else None
    if call.op.name == "strided_slice":
        slices = python_slices(attrs, shape)
        offset = _box_offset(shape, [range(size)[one] for size, one in zip(shape, slices, strict=True)])
        return None if offset is None else [offset]
    if call.op.name == "split":
        return _split_offsets(normal_axis(attrs.axis, len(shape)), shape, results)
    return None


def view_offsets(function: Function) -> list[int] | None:
    """Where in its first parameter the results of a primitive function begin, in elements; None if it computes, copies
    or reads something else."""
    body: RelayExpr = function.body
    if isinstance(body, Tuple):
        found = [_origin(field, function) for field in body.fields]
    elif isinstance(body, Call) and isinstance(body.checked_type, TupleType):
        parts, start = part_offsets(body), _origin(body.args[0], function) if body.args else None
        found = [None] if parts is None or start is None else [start + part for part in parts]
    else:
        found = [None if isinstance(body, Var) else _origin(body, function)]
    offsets = [offset for offset in found if offset is not None]
    return offsets if offsets and len(offsets) == len(found) else None


def _origin(expr: RelayExpr, function: Function) -> int | None:
    """Where in the function's first parameter a tensor begins."""
    total = 0
    while not isinstance(expr, Var):
        index = 0
        if isinstance(expr, TupleGetItem):
            index, expr = expr.index, expr.tuple_value
        elif not isinstance(expr.checked_type, TensorType):
            return None
        offsets = part_offsets(expr) if isinstance(expr, Call) else None
        if offsets is None:
            return None
        assert isinstance(expr, Call)
        total += offsets[index]
        expr = expr.args[0]
    return total if expr is function.params[0] else None


def _tensors(given: Type) -> list[TensorType] | None:
    fields = given.fields if isinstance(given, TupleType) else [given]
    tensors = [one for one in fields if isinstance(one, TensorType)]
    return tensors if len(tensors) == len(fields) else None


def _one_axis_alone(layouts: Sequence[Layout], shape: Sequence[int]) -> bool:
    """True if all elements are along one axis, whose parts are in the order of their size in both layouts."""
    long = {layouts[0][place].upper() for place, size in enumerate(shape) if size != 1}
    return len(long) <= 1 and all(
        layout.index_of(axis) < layout.index_of(axis.lower())
        for layout in layouts
        for axis in long
        if axis.lower() in layout
    )


def _box_offset(shape: Sequence[int], taken: Sequence[range]) -> int | None:
    """Where a box begins, if its elements follow one another: one element of the first axes, a row of the next, and all
    of the others."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    rest = iter(range(len(shape)))
    for axis in rest:
        if len(taken[axis]) != 1:
            if taken[axis].step != 1:
                return None
            break
    if any(taken[axis] != range(shape[axis]) for axis in rest):
        return None
    return sum(one.start * stride for one, stride in zip(taken, strides, strict=True))


def _split_offsets(axis: int, shape: Sequence[int], results: Sequence[TensorType]) -> list[int] | None:
    sizes = [one.concrete_shape[axis] for one in results]
    begins = list(accumulate(sizes, initial=0))[:-1]
    offsets = []
    for begin, size in zip(begins, sizes, strict=True):
        box = [range(extent) for extent in shape]
        box[axis] = range(begin, begin + size)
        offset = _box_offset(shape, box)
        if offset is None:
            return None
        offsets.append(offset)
    return offsets
