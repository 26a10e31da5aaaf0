"""Operators that move elements around, or pick some: integers stand for the same numbers as before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Call, Constant
from tilewright.relay.infer import type_of
from tilewright.relay.op.calls import call
from tilewright.relay.op.shapes import dims
from tilewright.relay.qnn.integers.affine import (
    Affine,
    NotInteger,
    TupleAffineType,
    integer_rule,
    quantized_constant,
    rescaled,
    scalar_type,
    tensor_type,
)

MOVING: Final = (
    *("reshape", "transpose", "squeeze", "expand_dims", "strided_slice", "broadcast_to", "copy"),
    *("nn.batch_flatten", "nn.depth_to_space", "nn.space_to_depth", "nn.max_pool1d", "nn.max_pool2d"),
    *(
        "nn.max_pool3d",
        "nn.global_max_pool2d",
        "nn.adaptive_max_pool2d",
        "repeat",
        "tile",
        "reverse",
        "max",
        "min",
    ),
)
"""One argument, and one scale for all of it. Scales are positive, so that the largest integer is the largest number."""

Rewritten = list[Any]


@integer_rule(*(name for name in MOVING if name != "reshape"))
def _unchanged(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    return [expr, scalar_type(affine[expr.args[0]])]


@integer_rule("reshape")
def _reshape(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    """Scales of the last axis stay with it where it stays, as in rows that were flattened for a product."""
    kind = tensor_type(affine[expr.args[0]])
    if kind.is_scalar:
        return _unchanged(expr, affine)
    before, after = (type_of(one) for one in (expr.args[0], expr))
    assert isinstance(before, TensorType) and isinstance(after, TensorType)
    shapes = dims(before), dims(after)
    if not shapes[1] or kind.axis % len(shapes[0]) != len(shapes[0]) - 1 or shapes[0][-1] != shapes[1][-1]:
        raise NotInteger("scales per channel are not carried along here")
    return [expr, replace(kind, axis=len(shapes[1]) - 1)]


@integer_rule("split")
def _split(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    attrs: Any = expr.attrs
    sections = attrs.indices_or_sections
    count = len(sections) + 1 if isinstance(sections, tuple) else int(sections)
    return [expr, TupleAffineType([scalar_type(affine[expr.args[0]])] * count)]


@integer_rule("image.resize2d")
def _resize(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    attrs: Any = expr.attrs
    if "nearest" not in attrs.method:
        raise NotInteger("numbers between pixels are not integers")
    return [expr, scalar_type(affine[expr.args[0]])]


@integer_rule("nn.pad")
def _pad(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    """The border is the integer that stands for its value."""
    kind, value = scalar_type(affine[expr.args[0]]), expr.args[1]
    attrs: Any = expr.attrs
    if value in affine:
        border: RelayExpr = rescaled(value, tensor_type(affine[value]), kind, kind.dtype)
    elif isinstance(value, Constant):
        border = quantized_constant(np.asarray(value.data.numpy()), kind, kind.dtype)
    else:
        raise NotInteger("the border is not known")
    return [call("nn.pad", expr.args[0], border, pad_width=attrs.pad_width, pad_mode=attrs.pad_mode), kind]


@integer_rule("concatenate")
def _concatenate(expr: Call, affine: dict[RelayExpr, Affine]) -> Rewritten:
    """All parts get the scale that the result is wanted in, unless they have one in common."""
    kinds = affine[expr.args[0]]
    if not isinstance(kinds, TupleAffineType):
        raise NotInteger("the parts are not a tuple")
    first = scalar_type(kinds.types[0])
    attrs: Any = expr.attrs
    if all(scalar_type(kind).same(first) and kind.dtype == first.dtype for kind in kinds.types):
        return [expr, first]
    wanted = scalar_type(affine[expr])
    parts: Any = expr.args[0]
    fields = [
        rescaled(part, kind, wanted, wanted.dtype)
        for part, kind in zip(parts.fields, kinds.types, strict=True)
    ]
    return [call("concatenate", type(parts)(fields), axis=attrs.axis), wanted]
