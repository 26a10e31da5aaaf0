"""Dense layers with a quantised weight and data in floating point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import as_it_is
from tilewright.relay.op.shapes import dims, same, tensor
from tilewright.te.tensor import Tensor
from tilewright.topi.nn.weight_only import WeightOnly, unpack_groups, unpack_weight


@attributes
class WeightOnlyAttrs(OpAttrs):
    """contrib_dense_weight_only: units, bits of a weight, and the zero point of groups that have none of their own."""

    units: Any = None
    bits: int = 4
    zero: int = 0


def weight_only_extents(shapes: Sequence[Sequence[Any]], attrs: Any) -> WeightOnly:
    """The extents of a layer, from the shapes of data, weight, scales and, if there are some, zero points."""
    data, weight, scales = shapes[:3]
    if len(data) != 2 or len(weight) != 3 or len(scales) != 3:
        raise RelationError("data have two dimensions, packed weights and scales three")
    if attrs.bits not in (2, 4, 8):
        raise RelationError(f"weights have 2, 4 or 8 bits, not {attrs.bits}")
    if not all(isinstance(extent, int) for extent in (data[1], *weight, *scales)):
        raise RelationError("the features and the shapes of weight and scales must be known")
    same(weight[0], scales[0], "the blocks of weight and scales")
    same(weight[2], scales[2], "the units of a block of weight and scales")
    if len(shapes) > 3:
        for extent, other in zip(scales, shapes[3], strict=True):
            same(extent, other, "the shapes of scales and zero points")
    made = WeightOnly.of(weight, scales[1], attrs.units, data[1], attrs.bits, attrs.zero)
    if made.words % made.groups or not made.depth <= made.words * made.fields < made.depth + made.group:
        raise RelationError(
            f"{made.groups} groups of {made.words} words do not hold just {made.depth} features"
        )
    if made.blocks != weight[0]:
        raise RelationError(f"{weight[0]} blocks of {made.block} units do not hold just {made.units}")
    return made


def _relation(types: Sequence[Type], attrs: Any) -> Type | None:
    if len(types) not in (3, 4):
        raise RelationError(f"data, weight, scales and perhaps zero points are needed, not {len(types)}")
    found = [tensor(one, "an operand") for one in types]
    given = [one for one in found if one is not None]
    if len(given) < len(found):
        return None
    weight_only_extents([dims(one) for one in given], attrs)
    return TensorType((dims(given[0])[0], attrs.units), given[0].dtype)


def _compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    extents = weight_only_extents([topi.utils.get_const_tuple(one.shape) for one in inputs], attrs)
    data, weight, scales, *zeros = inputs
    return [topi.nn.dense_weight_only(data, weight, scales, zeros[0] if zeros else None, extents)]


def _reference(attrs: Any, *given: Any) -> Any:
    data, weight, scales = given[:3]
    extents = weight_only_extents([one.shape for one in given], attrs)
    zeros = unpack_groups(given[3], extents).astype(np.int32) if len(given) > 3 else extents.zero
    whole = (unpack_weight(weight, extents) - zeros) * unpack_groups(scales, extents).astype(np.float64)
    return (data.astype(np.float64) @ whole.T).astype(data.dtype)


DENSE_WEIGHT_ONLY = define(
    "nn.contrib_dense_weight_only",
    arguments=None,
    attrs=WeightOnlyAttrs,
    relation=_relation,
    compute=_compute,
    reference=_reference,
    layout=as_it_is,
    kind=OpPattern.OPAQUE,
    level=10,
    description="Data times a transposed weight of packed integers with scales and zero points.",
)


def contrib_dense_weight_only(
    data: RelayExpr,
    weight: RelayExpr,
    scales: RelayExpr,
    zeros: RelayExpr | None = None,
    units: int | None = None,
    bits: int = 4,
    zero: int = 0,
) -> Call:
    """``dense`` with a weight of integers packed by ``topi.nn.weight_only``: (blocks of units, words, units of a
    block), and scales and zero points (blocks of units, groups, units of a block). ``zero`` is the zero point of all
    groups where ``zeros`` are not given."""
    operands = (data, weight, scales) if zeros is None else (data, weight, scales, zeros)
    return Call(DENSE_WEIGHT_ONLY, operands, WeightOnlyAttrs(units, bits, zero))
