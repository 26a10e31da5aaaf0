"""``nn.pad`` by amounts that the program computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.expr import PrimExpr
from tilewright.ir.operators import cast, maximum, minimum
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.dyn.support import reference_of, unknown
from tilewright.relay.op.nn.padding import PadAttrs
from tilewright.relay.op.shapes import tensors
from tilewright.relay.op.transform.support import (
    as_int64,
    constant_shape,
    require,
    result_shape,
    shape_program,
)
from tilewright.te.operation import compute
from tilewright.te.tensor import Tensor
from tilewright.tir.op import all as all_of
from tilewright.tir.op import any as any_of
from tilewright.tir.op import if_then_else


def _pad_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of pad", "the widths", "the value")
    if found is None:
        return None
    data, widths, value = found
    rank = len(data.shape)
    if not widths.dtype.is_integral or constant_shape(widths, "the widths") != (rank, 2):
        raise RelationError(
            f"pad: the widths are a pair of integers for each dimension of {data}, not {widths}"
        )
    if constant_shape(value, "the value") not in ((), (1,)):
        raise RelationError(f"pad: the value is a scalar, not {value}")
    return TensorType(unknown(rank), data.dtype)


def _pad_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data, widths, value = inputs

    def place(axis: int, index: PrimExpr) -> PrimExpr:
        """Where an element comes from; it is outside the data where a constant is added."""
        found = index - cast(index.dtype, widths(axis, 0))
        last = data.shape[axis] - 1
        if attrs.pad_mode == "edge":
            return minimum(maximum(found, 0), last)
        if attrs.pad_mode == "reflect":
            mirrored = if_then_else(found < 0, -found, found)
            return if_then_else(mirrored > last, last * 2 - mirrored, mirrored)
        return found

    def element(*indices: PrimExpr) -> PrimExpr:
        places = [place(axis, index) for axis, index in enumerate(indices)]
        if attrs.pad_mode != "constant":
            return data(*places)
        inside = [
            test
            for found, extent in zip(places, data.shape, strict=True)
            for test in (found >= 0, found < extent)
        ]
        outside = cast(data.dtype, value(*[0] * len(value.shape)))
        return if_then_else(all_of(*inside), data(*places), outside)

    made: Tensor = compute(result_shape(out_type), element, name="T_pad", tag=topi.tag.INJECTIVE)
    return [made]


def _pad_shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
    rank = int(out_ndims[0])

    def program(builder: Any, ins: Any, outs: Any) -> None:
        for axis in range(rank):
            before = builder.let("before", as_int64(ins[1][axis * 2]))
            after = builder.let("after", as_int64(ins[1][axis * 2 + 1]))
            size = builder.let("size", as_int64(ins[0][axis]))
            if attrs.pad_mode == "constant":
                # A negative width takes elements away.
                require(builder, size + before + after >= 0, "pad: more is taken away than there is")
            else:
                require(builder, all_of(before >= 0, after >= 0), "pad: a width is negative")
            if attrs.pad_mode == "reflect":
                fits = any_of(all_of(before < size, after < size), before + after < 1)
                require(builder, fits, "pad: a mirror image is wider than the data")
            if attrs.pad_mode == "edge":
                has_edge = any_of(size > 0, before + after < 1)
                require(builder, has_edge, "pad: an axis without elements has no edge to repeat")
            outs[0][axis] = size + before + after

    return shape_program("pad_shape", [inputs[0], inputs[1]], [rank], program)


define(
    "dyn.nn.pad",
    arguments=("data", "pad_width", "pad_value"),
    attrs=PadAttrs,
    relation=_pad_relation,
    compute=_pad_compute,
    reference=lambda attrs, data, widths, value: reference_of(
        "nn.pad", attrs.replace(pad_width=widths.tolist()), data, value
    ),
    kind=OpPattern.INJECTIVE,
    shape_function=_pad_shape,
    data_dependent=(False, True, False),
    level=10,
    description="Padding by widths that the program computes.",
)
