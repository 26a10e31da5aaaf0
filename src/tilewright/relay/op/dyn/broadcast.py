"""``broadcast_to`` and ``tile`` with shapes that the program computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import topi
from tilewright.ir.expr import PrimExpr
from tilewright.ir.operators import const
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.dyn.support import reference_of, unknown, vector_size, whole_numbers
from tilewright.relay.op.shapes import tensors
from tilewright.relay.op.transform.broadcast import TileAttrs
from tilewright.relay.op.transform.creation import InitOpAttrs
from tilewright.relay.op.transform.support import (
    as_int64,
    require,
    result_shape,
    shape_program,
    vector_length,
)
from tilewright.te.tensor import Tensor
from tilewright.tir.op import any as any_of


def _broadcast_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of broadcast_to", "the shape")
    if found is None:
        return None
    rank = vector_size(found[1], "the shape")
    if rank < len(found[0].shape):
        raise RelationError(f"broadcast_to: {found[0]} has more than {rank} dimensions")
    return TensorType(unknown(rank), found[0].dtype)


def _broadcast_shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
    rank = int(out_ndims[0])
    missing = rank - vector_length(inputs[0])

    def program(builder: Any, ins: Any, outs: Any) -> None:
        for place in range(rank):
            wanted = builder.let("wanted", as_int64(ins[1][place]))
            if place >= missing:
                have = builder.let("have", as_int64(ins[0][place - missing]))
                fits = any_of(have.equal(1), have.equal(wanted))
                require(
                    builder, fits, "broadcast_to: a dimension is neither 1 nor equal to the requested one"
                )
            outs[0][place] = wanted

    return shape_program("broadcast_to_shape", inputs, [rank], program)


define(
    "dyn.broadcast_to",
    arguments=("data", "shape"),
    attrs=InitOpAttrs,
    relation=_broadcast_relation,
    compute=lambda attrs, inputs, out_type: [topi.broadcast_to(inputs[0], result_shape(out_type))],
    reference=lambda attrs, data, shape: reference_of(
        "broadcast_to", attrs.replace(shape=whole_numbers(shape)), data
    ),
    gradient=lambda primal, grad: [
        call("collapse_sum_like", grad, primal.args[0]),
        call("zeros_like", primal.args[1]),
    ],
    kind=OpPattern.BROADCAST,
    shape_function=_broadcast_shape,
    data_dependent=(False, True),
    description="The tensor repeated to a shape that the program computes.",
)


def _tile_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of tile", "the numbers of repetitions")
    if found is None:
        return None
    rank = max(len(found[0].shape), vector_size(found[1], "the numbers of repetitions"))
    return TensorType(unknown(rank), found[0].dtype)


def _tile_shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
    rank, data_rank, count = int(out_ndims[0]), vector_length(inputs[0]), vector_length(inputs[1])

    def program(builder: Any, ins: Any, outs: Any) -> None:
        for place in range(rank):
            extent: PrimExpr = const(1, "int64")
            if place >= rank - data_rank:
                extent = as_int64(ins[0][place - (rank - data_rank)])
            if place >= rank - count:
                times = builder.let("times", as_int64(ins[1][place - (rank - count)]))
                require(builder, times > 0, "tile: a tensor is repeated once or more along an axis")
                extent = extent * times
            outs[0][place] = extent

    return shape_program("tile_shape", inputs, [rank], program)


define(
    "dyn.tile",
    arguments=("data", "reps"),
    attrs=TileAttrs,
    relation=_tile_relation,
    compute=lambda attrs, inputs, out_type: [
        topi.dyn_tile(inputs[0], result_shape(out_type), vector_length(inputs[1]))
    ],
    reference=lambda attrs, data, reps: reference_of("tile", TileAttrs(tuple(whole_numbers(reps))), data),
    kind=OpPattern.BROADCAST,
    shape_function=_tile_shape,
    data_dependent=(False, True),
    description="The whole tensor repeated along axes, as often as the program computes.",
)
