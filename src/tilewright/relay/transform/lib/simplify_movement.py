"""Rules of SimplifyExpr for operators that move data: merge chains of them, and remove those that move nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.type import TupleType
from tilewright.relay.expr import Call, Tuple, TupleGetItem
from tilewright.relay.op.calls import call
from tilewright.relay.op.shapes import Shape, known
from tilewright.relay.transform.lib.rewriting import is_call, made_type, shape_of, tensor_of
from tilewright.tir.data_layout import Layout

RESHAPES = ("reshape", "contrib_reverse_reshape")
SHAPE_ONLY = (*RESHAPES, "squeeze", "expand_dims", "nn.batch_flatten")
"""Operators that give the same elements, in the same order, another shape."""
PERMUTING = ("transpose", "layout_transform")


def _operand(expr: Call, *names: str) -> Call | None:
    """The first argument, where it calls one of these operators."""
    inner = expr.args[0]
    return inner if isinstance(inner, Call) and is_call(inner, *names) else None


def _same_static_shape(expr: RelayExpr, other: RelayExpr) -> bool:
    shape = shape_of(expr)
    return known(*shape) and shape == shape_of(other)


def same_shape(expr: Call) -> RelayExpr | None:
    """An operator that gives its argument another shape, and it is the one that was there."""
    if _same_static_shape(expr, expr.args[0]) or (is_call(expr, "reshape") and _keeps_dimensions(expr)):
        return expr.args[0]
    return None


def _keeps_dimensions(expr: Call) -> bool:
    """True if every code of a reshape keeps a dimension, or is the constant that it is."""
    attrs: Any = expr.attrs
    shape = shape_of(expr.args[0])
    if attrs.allowzero or len(attrs.newshape) != len(shape):
        return False
    return all(code in (0, size) for code, size in zip(attrs.newshape, shape, strict=True))


def chained_shapes(expr: Call) -> RelayExpr | None:
    """Two consecutive shape changes: back to the original, or one reshape."""
    inner = _operand(expr, *SHAPE_ONLY)
    if inner is None:
        return None
    source = inner.args[0]
    if _same_static_shape(expr, source):
        return source
    if not is_call(expr, *RESHAPES):
        return None
    shape = shape_of(expr)
    if known(*shape) and 0 not in shape:
        return call("reshape", source, newshape=shape)
    attrs: Any = expr.attrs
    # Numbers that say nothing about the dimensions that are there mean the same for any of them.
    if is_call(expr, "reshape") and all(code > 0 or code == -1 for code in attrs.newshape):
        return expr.replace(args=(source,))
    return None


def _permutation(expr: Call) -> tuple[int, ...] | None:
    """Where each axis of the result comes from; None for layouts with split axes."""
    attrs: Any = expr.attrs
    if is_call(expr, "transpose"):
        rank = len(shape_of(expr))
        axes = attrs.axes if attrs.axes else tuple(reversed(range(rank)))
        return tuple(axis % rank for axis in axes)
    source, result = Layout(attrs.src_layout), Layout(attrs.dst_layout)
    if any(len(each) != len(each.primal_axes()) for each in (source, result)) or len(source) != len(result):
        return None
    return tuple(source.index_of(result[place]) for place in range(len(result)))


def _transposed(source: RelayExpr, order: Sequence[int]) -> RelayExpr:
    if tuple(order) == tuple(range(len(order))):
        return source
    return call("transpose", source, axes=tuple(order))


def permuted(expr: Call) -> RelayExpr | None:
    """An identity permutation, and two consecutive permutations."""
    order = _permutation(expr)
    if order is not None and order == tuple(range(len(order))):
        return expr.args[0]
    inner = _operand(expr, *PERMUTING)
    if inner is None:
        return None
    if is_call(expr, "layout_transform") and is_call(inner, "layout_transform"):
        return _two_layouts(expr, inner)
    before = _permutation(inner)
    if order is None or before is None:
        return None
    return _transposed(inner.args[0], [before[axis] for axis in order])


def permuted_choice(expr: Call) -> RelayExpr | None:
    """A transpose of a choice between a number and a tensor that was transposed the other way before: only the
    condition, which is often smaller, is transposed."""
    order, choice = _permutation(expr), _operand(expr, "where")
    if order is None or choice is None:
        return None
    condition = choice.args[0]
    shape = shape_of(condition)
    for place in (1, 2):
        data, other = choice.args[place], choice.args[3 - place]
        if (
            not isinstance(data, Call)
            or not is_call(data, "transpose")
            or not _same_static_shape(choice, data)
        ):
            continue
        before = _permutation(data)
        if before is None or [before[axis] for axis in order] != list(range(len(order))):
            continue
        if shape_of(other) != () or not known(*shape):
            continue
        if shape:
            full = (1,) * (len(order) - len(shape)) + tuple(shape)
            aligned = condition if full == tuple(shape) else call("reshape", condition, newshape=full)
            condition = _transposed(aligned, order)
        values = (data.args[0], other) if place == 1 else (other, data.args[0])
        return call("where", condition, *values)
    return None


def _two_layouts(expr: Call, inner: Call) -> RelayExpr | None:
    outer_attrs: Any = expr.attrs
    inner_attrs: Any = inner.attrs
    source = inner.args[0]
    shapes: list[Shape] = [shape_of(each) for each in (source, inner, expr)]
    if outer_attrs.src_layout != inner_attrs.dst_layout or not all(known(*shape) for shape in shapes):
        return None
    # Where a block was filled up with zeros, there are more elements than before.
    if len({math.prod(shape) for shape in shapes}) != 1:
        return None
    if inner_attrs.src_layout == outer_attrs.dst_layout:
        return source
    attrs = outer_attrs.replace(src_layout=inner_attrs.src_layout)
    return expr.replace(args=(source,), attrs=attrs)


def whole_slice(expr: Call) -> RelayExpr | None:
    """A slice of everything, in order."""
    attrs: Any = expr.attrs
    if attrs.slice_mode == "end" and any(step != 1 for step in attrs.strides or ()):
        return None
    return same_shape(expr)


def no_padding(expr: Call) -> RelayExpr | None:
    """Nothing is put around the data."""
    attrs: Any = expr.attrs
    return expr.args[0] if all(tuple(width) == (0, 0) for width in attrs.pad_width) else None


def joined(expr: Call) -> RelayExpr | None:
    """A single tensor, or the parts of a split one in order."""
    attrs: Any = expr.attrs
    parts = expr.args[0]
    if isinstance(parts, Tuple):
        if len(parts.fields) == 1:
            return parts.fields[0]
        first = parts.fields[0]
        if not isinstance(first, TupleGetItem):
            return None
        split = first.tuple_value
        in_order = all(
            isinstance(field, TupleGetItem) and field.tuple_value is split and field.index == place
            for place, field in enumerate(parts.fields)
        )
        count = len(parts.fields)
    else:
        split, in_order = parts, True
        whole = made_type(parts)
        count = len(whole.fields) if isinstance(whole, TupleType) else 0
    if not in_order or not isinstance(split, Call) or not is_call(split, "split"):
        return None
    given = made_type(split)
    if not isinstance(given, TupleType) or len(given.fields) != count:
        return None
    rank = len(shape_of(split.args[0]))
    own: Any = split.attrs
    return split.args[0] if own.axis % rank == attrs.axis % rank else None


def split_again(expr: Call) -> RelayExpr | None:
    """The parts of which a tensor was just made; and a single part is the whole."""
    attrs: Any = expr.attrs
    made = made_type(expr)
    if not isinstance(made, TupleType):
        return None
    if len(made.fields) == 1:
        return Tuple([expr.args[0]])
    inner = _operand(expr, "concatenate")
    if inner is None or not isinstance(inner.args[0], Tuple):
        return None
    parts = inner.args[0].fields
    rank = len(shape_of(inner))
    joined_along: Any = inner.attrs
    if joined_along.axis % rank != attrs.axis % rank or len(parts) != len(made.fields):
        return None
    same = all(
        known(*shape_of(part)) and tensor_of(part) == field
        for part, field in zip(parts, made.fields, strict=True)
    )
    return Tuple(parts) if same else None


RULES = {
    **{name: (same_shape, chained_shapes) for name in SHAPE_ONLY},
    **{name: (permuted,) for name in PERMUTING},
    "transpose": (permuted, permuted_choice),
    "broadcast_to": (same_shape,),
    "tile": (same_shape,),
    "repeat": (same_shape,),
    "strided_slice": (whole_slice,),
    "nn.pad": (no_padding,),
    "concatenate": (joined,),
    "split": (split_again,),
}
