"""``reshape``, ``expand_dims`` and ``squeeze`` to shapes and at axes that the program computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.expr import PrimExpr
from tilewright.ir.operators import const, floordiv, floormod, multiply
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.dyn.support import reference_of, unknown, vector_size, whole_numbers
from tilewright.relay.op.shapes import tensors
from tilewright.relay.op.transform.reshaping import ExpandDimsAttrs, ReshapeAttrs, SqueezeAttrs
from tilewright.relay.op.transform.support import (
    as_int64,
    require,
    result_shape,
    shape_program,
    vector_length,
)
from tilewright.te.tensor import Tensor
from tilewright.tir.ir_builder import BufferVar, IRBuilder
from tilewright.tir.op import all as all_of
from tilewright.tir.op import if_then_else
from tilewright.topi.kernel import scalar


def _to_result_shape(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    return [topi.reshape(inputs[0], result_shape(out_type))]


def _gradient(primal: Any, grad: Any) -> list[Any]:
    return [call("reshape_like", grad, primal.args[0]), call("zeros_like", primal.args[1])]


def _reshape_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of reshape", "the new shape")
    if found is None:
        return None
    return TensorType(unknown(vector_size(found[1], "the new shape")), found[0].dtype)


class _ShapeProgram:
    """The loops that read codes one after the other, as ``reshape_rule`` does when they are constants."""

    def __init__(self, builder: IRBuilder, shape: BufferVar, rank: int, result: BufferVar) -> None:
        self.builder = builder
        self.shape = shape
        self.rank = rank
        self.result = result
        self.position = scalar(builder, "int32", "position", 0)
        self.have = scalar(builder, "int64", "have", 1)
        self.given = scalar(builder, "int64", "given", 1)
        self.inferred = scalar(builder, "int32", "inferred", -1)

    def next_dimension(self) -> PrimExpr:
        """The next dimension of the input, which must be there."""
        require(self.builder, self.position[0] < self.rank, "reshape: no dimension is left for a code")
        extent = self.builder.let("extent", as_int64(self.shape[self.position[0]]))
        self.position[0] = self.position[0] + 1
        return extent

    def balance(self) -> None:
        """The next dimension of the input, if there is one, counts as not taken over."""
        with self.builder.if_scope(self.position[0] < self.rank):
            self.have[0] = self.have[0] * self.next_dimension()

    def read(self, place: int, code: PrimExpr, allow_zero: bool) -> None:
        """One number of the new shape."""
        builder = self.builder
        with builder.if_scope(code >= 0 if allow_zero else code > 0):
            self.result[place] = code
            self.given[0] = self.given[0] * code
            self.balance()
        if not allow_zero:
            with builder.if_scope(code.equal(0)):
                self.result[place] = self.next_dimension()
        with builder.if_scope(code.equal(-1)):
            require(builder, self.inferred[0] < 0, "reshape: -1 occurs twice in the new shape")
            self.inferred[0] = place
            self.balance()
        with builder.if_scope(code.equal(-3)):
            first = self.next_dimension()
            self.result[place] = multiply(first, self.next_dimension())

    def finish(self, count: int) -> None:
        """Fill in -1, and check that the number of elements stays."""
        builder = self.builder
        for place in range(self.rank):
            with builder.if_scope(self.position[0] <= place):
                self.have[0] = self.have[0] * as_int64(self.shape[place])
        with builder.if_scope(self.inferred[0] >= 0):
            require(builder, self.given[0] > 0, "reshape: -1 can be anything where another dimension is zero")
            fits = floormod(self.have[0], self.given[0]).equal(0)
            require(builder, fits, "reshape: the elements do not divide by the new dimensions")
            self.result[self.inferred[0]] = floordiv(self.have[0], self.given[0])
        before: PrimExpr = const(1, "int64")
        for place in range(self.rank):
            before = before * as_int64(self.shape[place])
        after: PrimExpr = const(1, "int64")
        for place in range(count):
            after = after * self.result[place]
        require(builder, before.equal(after), "reshape: the new shape has another number of elements")


def _reshape_shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
    rank, count = vector_length(inputs[0]), vector_length(inputs[1])

    def program(builder: Any, ins: Any, outs: Any) -> None:
        made = _ShapeProgram(builder, ins[0], rank, outs[0])
        for place in range(count):
            code = builder.let("code", as_int64(ins[1][place]))
            known = all_of(code >= -3, code != -2)
            require(builder, known, "reshape: a computed shape has positive numbers, 0, -1 and -3")
            made.read(place, code, attrs.allowzero)
        made.finish(count)

    return shape_program("reshape_shape", inputs, [count], program)


define(
    "dyn.reshape",
    arguments=("data", "newshape"),
    attrs=ReshapeAttrs,
    relation=_reshape_relation,
    compute=_to_result_shape,
    reference=lambda attrs, data, newshape: reference_of(
        "reshape", attrs.replace(newshape=whole_numbers(newshape)), data
    ),
    gradient=_gradient,
    kind=OpPattern.INJECTIVE,
    shape_function=_reshape_shape,
    data_dependent=(False, True),
    description="The elements in a shape that the program computes.",
)


def _expand_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of expand_dims", "the axis")
    if found is None:
        return None
    if vector_size(found[1], "the axis") != 1:
        raise RelationError(f"expand_dims: the axis is one number, not {found[1]}")
    return TensorType(unknown(len(found[0].shape) + attrs.num_newaxis), found[0].dtype)


def _expand_shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
    count = attrs.num_newaxis
    rank = int(out_ndims[0]) - count

    def program(builder: Any, ins: Any, outs: Any) -> None:
        given = builder.let("given", as_int64(ins[1][0]))
        axis = builder.let("axis", if_then_else(given < 0, given + (rank + 1), given))
        require(builder, all_of(axis >= 0, axis <= rank), "expand_dims: the axis is out of range")
        one = const(1, "int64")
        for place in range(rank + count):
            extent: PrimExpr = one
            if place < rank:
                extent = if_then_else(axis > place, as_int64(ins[0][place]), extent)
            if place >= count:
                extent = if_then_else(axis + count <= place, as_int64(ins[0][place - count]), extent)
            outs[0][place] = extent

    return shape_program("expand_dims_shape", inputs, [rank + count], program)


define(
    "dyn.expand_dims",
    arguments=("data", "axis"),
    attrs=ExpandDimsAttrs,
    relation=_expand_relation,
    compute=_to_result_shape,
    reference=lambda attrs, data, axis: reference_of(
        "expand_dims", attrs.replace(axis=int(axis.item())), data
    ),
    gradient=_gradient,
    kind=OpPattern.BROADCAST,
    shape_function=_expand_shape,
    data_dependent=(False, True),
    description="New dimensions of size one at an axis that the program computes.",
)


def _squeeze_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of squeeze", "the axes")
    if found is None:
        return None
    rank = len(found[0].shape) - vector_size(found[1], "the axes")
    if rank < 0:
        raise RelationError(f"squeeze: {found[1]} names more axes than {found[0]} has")
    return TensorType(unknown(rank), found[0].dtype)


def _squeeze_shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
    rank, dropped = vector_length(inputs[0]), vector_length(inputs[1])

    def program(builder: Any, ins: Any, outs: Any) -> None:
        written = scalar(builder, "int32", "written", 0)
        for place in range(rank):
            kept: PrimExpr = const(True)
            for number in range(dropped):
                axis = as_int64(ins[1][number])
                kept = all_of(kept, axis != place, axis != place - rank)
            with builder.if_scope(kept):
                require(
                    builder, written[0] < rank - dropped, "squeeze: an axis is out of range, or occurs twice"
                )
                outs[0][written[0]] = as_int64(ins[0][place])
                written[0] = written[0] + 1
            with builder.else_scope():
                require(builder, as_int64(ins[0][place]).equal(1), "squeeze: a dimension is not one")

    return shape_program("squeeze_shape", inputs, [rank - dropped], program)


define(
    "dyn.squeeze",
    arguments=("data", "axis"),
    attrs=SqueezeAttrs,
    relation=_squeeze_relation,
    compute=_to_result_shape,
    reference=lambda attrs, data, axis: reference_of(
        "squeeze", SqueezeAttrs(tuple(whole_numbers(axis))), data
    ),
    gradient=_gradient,
    kind=OpPattern.INJECTIVE,
    shape_function=_squeeze_shape,
    data_dependent=(False, True),
    description="The tensor without dimensions of size one at axes that the program computes.",
)
