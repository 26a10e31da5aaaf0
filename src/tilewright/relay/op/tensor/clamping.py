"""Elementwise operators with attributes: limits and fixed-point scales."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import elementwise
from tilewright.relay.op.relations import number_type
from tilewright.relay.op.shapes import tensor
from tilewright.relay.op.tensor.reference import Array, fixed_point_product, is_integral


@attributes
class ClipAttrs(OpAttrs):
    """The limits, both within the range."""

    a_min: float
    a_max: float


@attributes
class FixedPointMultiplyAttrs(OpAttrs):
    """The factor ``multiplier * 2**(shift - 31)``."""

    multiplier: int
    shift: int


def _clipped(attrs: ClipAttrs, data: Array) -> Array:
    """NaN stays. Limits of integers are rounded into the range, and end where the type does."""
    low, high = attrs.a_min, attrs.a_max
    if is_integral(data):
        ends = np.iinfo(data.dtype)
        low = ends.min if low <= ends.min else min(math.ceil(low), ends.max)
        high = ends.max if high >= ends.max else max(math.floor(high), ends.min)
    least, most = np.asarray(low, dtype=data.dtype), np.asarray(high, dtype=data.dtype)
    return np.where(data > most, most, np.where(data < least, least, data))


def _clip_gradient(result: Call, grad: RelayExpr) -> list[Any]:
    within = call("equal", result.args[0], result)
    return [call("multiply", grad, call("cast_like", within, grad))]


_clip = define(
    "clip",
    arguments=("data",),
    attrs=ClipAttrs,
    relation=number_type,
    compute=lambda attrs, inputs, out_type: [topi.clip(inputs[0], attrs.a_min, attrs.a_max)],
    reference=_clipped,
    gradient=_clip_gradient,
    layout=elementwise,
    kind=OpPattern.ELEMWISE,
    level=3,
    description="Elements below a_min become it, elements above a_max become that; NaN stays.",
)


def clip(a: RelayExpr, a_min: float, a_max: float) -> Call:
    """Elements below ``a_min`` become it, elements above ``a_max`` become that; NaN stays."""
    return Call(_clip, (a,), ClipAttrs(a_min=a_min, a_max=a_max))


def _int32(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensor(types[0], "the argument")
    if found is not None and found.dtype != "int32":
        raise RelationError(f"fixed_point_multiply is for int32, not {found.dtype}")
    return found


_fixed_point_multiply = define(
    "fixed_point_multiply",
    arguments=("data",),
    attrs=FixedPointMultiplyAttrs,
    relation=_int32,
    compute=lambda attrs, inputs, out_type: [
        topi.fixed_point_multiply(inputs[0], attrs.multiplier, attrs.shift)
    ],
    reference=lambda attrs, data: fixed_point_product(data, attrs.multiplier, attrs.shift),
    layout=elementwise,
    kind=OpPattern.ELEMWISE,
    level=10,
    description="The product with multiplier * 2**(shift - 31), rounded to the nearest integer, halves upwards.",
)


def fixed_point_multiply(data: RelayExpr, multiplier: int, shift: int) -> Call:
    """The product with the fixed-point number ``multiplier * 2**(shift - 31)``, rounded to the nearest integer, halves
    upwards."""
    attrs = FixedPointMultiplyAttrs(multiplier=multiplier, shift=shift)
    return Call(_fixed_point_multiply, (data,), attrs)
