"""``topk`` with a number of elements that the program computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.expr import Any as AnyDimension
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType, Type
from tilewright.relay.op.algorithm import TopKAttrs
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.dyn.support import reference_of, vector_size
from tilewright.relay.op.shapes import dims, normal_axis, tensors
from tilewright.relay.op.transform.support import as_int64, require, result_shape, shape_program
from tilewright.te.tensor import Tensor
from tilewright.tir.op import if_then_else


def _relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of topk", "k")
    if found is None:
        return None
    data, k = found
    if vector_size(k, "k") != 1:
        raise RelationError(f"topk: k is one number, not {k}")
    shape = list(dims(data))
    shape[normal_axis(attrs.axis, len(shape))] = AnyDimension()
    values, positions = TensorType(shape, data.dtype), TensorType(shape, attrs.dtype)
    if attrs.ret_type == "both":
        return TupleType([values, positions])
    return values if attrs.ret_type == "values" else positions


def _compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    first = out_type.fields[0] if attrs.ret_type == "both" else out_type
    count = result_shape(first)[normal_axis(attrs.axis, len(first.shape))]
    made = topi.topk(inputs[0], count, attrs.axis, attrs.ret_type, attrs.is_ascend, attrs.dtype)
    return list(made) if isinstance(made, (list, tuple)) else [made]


def _shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
    rank = int(out_ndims[0])
    axis = normal_axis(attrs.axis, rank)

    def program(builder: Any, ins: Any, outs: Any) -> None:
        k = builder.let("k", as_int64(ins[1][0]))
        for place in range(rank):
            extent = builder.let("extent", as_int64(ins[0][place]))
            if place == axis:
                require(builder, k <= extent, "topk: more elements are requested than there are")
                extent = if_then_else(k < 1, extent, k)
            for vector in outs:
                vector[place] = extent

    return shape_program("topk_shape", inputs, [rank] * len(out_ndims), program)


define(
    "dyn.topk",
    arguments=("data", "k"),
    attrs=TopKAttrs,
    relation=_relation,
    compute=_compute,
    reference=lambda attrs, data, k: reference_of("topk", attrs.replace(k=int(k.item())), data),
    kind=OpPattern.OPAQUE,
    shape_function=_shape,
    data_dependent=(False, True),
    level=6,
    description="The first elements in order along an axis, as many as the program computes.",
)
