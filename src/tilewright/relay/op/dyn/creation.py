"""Tensors of shapes that the program computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.expr import Any as AnyDimension
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.dyn.support import reference_of, unknown, vector_size, whole_numbers
from tilewright.relay.op.shapes import normal_axis, tensor, tensors
from tilewright.relay.op.transform.broadcast import copied_vector
from tilewright.relay.op.transform.creation import (
    InitOpAttrs,
    OneHotAttrs,
    one_hot_compute,
    one_hot_gradient,
    one_hot_type,
)
from tilewright.relay.op.transform.support import as_int64, require, result_shape, shape_program
from tilewright.te.tensor import Tensor


def _full_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the value of full", "the shape")
    if found is None:
        return None
    value, shape = found
    if value.shape:
        raise RelationError(f"the value of full is a scalar, not {value}")
    return TensorType(unknown(vector_size(shape, "the shape")), attrs.dtype or value.dtype)


define(
    "dyn.full",
    arguments=("fill_value", "shape"),
    attrs=InitOpAttrs,
    relation=_full_relation,
    compute=lambda attrs, inputs, out_type: [topi.full(result_shape(out_type), out_type.dtype, inputs[0])],
    reference=lambda attrs, value, shape: reference_of(
        "full", attrs.replace(shape=whole_numbers(shape)), value
    ),
    gradient=lambda primal, grad: [
        call("cast_like", call("sum", grad), primal.args[0]),
        call("zeros_like", primal.args[1]),
    ],
    kind=OpPattern.ELEMWISE,
    shape_function=lambda attrs, inputs, out_ndims: copied_vector("full_shape", inputs[1], int(out_ndims[0])),
    data_dependent=(False, True),
    description="A tensor of one value, of a shape that the program computes.",
)


def _init_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    shape = tensor(types[0], "the shape")
    return shape and TensorType(unknown(vector_size(shape, "the shape")), attrs.dtype)


def _constant(name: str, value: int) -> None:
    define(
        f"dyn.{name}",
        arguments=("shape",),
        attrs=InitOpAttrs,
        relation=_init_relation,
        compute=lambda attrs, inputs, out_type: [topi.full(result_shape(out_type), out_type.dtype, value)],
        reference=lambda attrs, shape: reference_of(name, attrs.replace(shape=whole_numbers(shape))),
        gradient=lambda primal, grad: [call("zeros_like", primal.args[0])],
        kind=OpPattern.ELEMWISE,
        shape_function=lambda attrs, inputs, out_ndims: copied_vector(
            f"{name}_shape", inputs[0], int(out_ndims[0])
        ),
        data_dependent=True,
        description=f"A tensor of {name}, of a shape that the program computes.",
    )


_constant("zeros", 0)
_constant("ones", 1)


def _one_hot_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the indices of one_hot", "on_value", "off_value", "the depth")
    if found is None:
        return None
    if vector_size(found[3], "the depth") != 1:
        raise RelationError(f"one_hot: the depth is one number, not {found[3]}")
    return one_hot_type(found, AnyDimension(), attrs)


def _one_hot_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    axis = normal_axis(attrs.axis, len(out_type.shape))
    return [one_hot_compute(inputs, result_shape(out_type)[axis], attrs)]


def _one_hot_shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
    rank = int(out_ndims[0])
    axis = normal_axis(attrs.axis, rank)

    def program(builder: Any, ins: Any, outs: Any) -> None:
        depth = builder.let("depth", as_int64(ins[1][0]))
        require(builder, depth > 0, "one_hot: the depth is less than one")
        for place in range(rank):
            source = place if place < axis else place - 1
            outs[0][place] = depth if place == axis else as_int64(ins[0][source])

    return shape_program("one_hot_shape", [inputs[0], inputs[3]], [rank], program)


define(
    "dyn.one_hot",
    arguments=("indices", "on_value", "off_value", "depth"),
    attrs=OneHotAttrs,
    relation=_one_hot_relation,
    compute=_one_hot_compute,
    reference=lambda attrs, indices, on, off, depth: reference_of(
        "one_hot", attrs.replace(depth=int(depth.item())), indices, on, off
    ),
    gradient=one_hot_gradient,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    shape_function=_one_hot_shape,
    data_dependent=(False, False, False, True),
    description="As one_hot, with a depth that the program computes.",
)
