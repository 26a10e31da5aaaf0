"""Operators that repeat elements (``broadcast_to``, ``tile``, ``repeat``), reduce repeated ones, and select between
tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir import operators
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as AnyDimension
from tilewright.ir.expr import IntImm
from tilewright.ir.operators import cast
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import broadcast
from tilewright.relay.op.shapes import (
    Shape,
    broadcast_shapes,
    combine,
    dims,
    normal_axis,
    require,
    shape_text,
    tensor,
    tensors,
)
from tilewright.relay.op.transform.creation import InitOpAttrs
from tilewright.relay.op.transform.support import (
    Array,
    as_expression,
    as_int64,
    constant_list,
    constant_shape,
    integers,
    is_computed,
    result_shape,
    shape_program,
)
from tilewright.support.errors import ExpressionError
from tilewright.te.broadcast_shape import same_extent
from tilewright.te.operation import compute, reduce_axis
from tilewright.te.tensor import Tensor
from tilewright.tir.op import if_then_else
from tilewright.tir.reducer import sum as te_sum
from tilewright.topi.arguments import accumulator_type


def fits(shape: Shape, wanted: Shape, what: str) -> Shape:
    """The shape that a broadcast to ``wanted`` gives: an error if the tensor has a dimension that does not fit."""
    if len(shape) > len(wanted):
        raise RelationError(f"{what}: {shape_text(shape)} has more dimensions than {shape_text(wanted)}")
    for have, want in zip(shape[::-1], wanted[::-1], strict=False):
        require(
            lambda have, want: (
                have in (1, want)
                if isinstance(have, int)
                else operators.logical_or(operators.equal(have, 1), operators.equal(have, want))
            ),
            (have, want),
            f"{what}: {shape_text(shape)} does not fit {shape_text(wanted)}",
        )
    return wanted


def _broadcast_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    return [topi.broadcast_to(inputs[0], result_shape(out_type))]


def _broadcast_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of broadcast_to")
    return data and TensorType(fits(dims(data), attrs.shape, "broadcast_to"), data.dtype)


_BROADCAST_TO = define(
    "broadcast_to",
    arguments=("data",),
    attrs=InitOpAttrs,
    relation=_broadcast_relation,
    compute=_broadcast_compute,
    reference=lambda attrs, data: np.broadcast_to(data, attrs.shape).copy(),
    gradient=lambda primal, grad: [call("collapse_sum_like", grad, primal.args[0])],
    kind=OpPattern.BROADCAST,
    level=4,
    description="The tensor repeated to a shape.",
)


def broadcast_to(data: RelayExpr, shape: Any) -> Call:
    """The tensor repeated to a shape, which may be an expression."""
    if is_computed(shape):
        return call("dyn.broadcast_to", data, shape)
    return Call(_BROADCAST_TO, (data,), InitOpAttrs(integers(shape, "broadcast_to"), ""))


def _broadcast_like_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of broadcast_to_like", "the tensor whose shape is taken")
    return (
        None
        if found is None
        else TensorType(fits(dims(found[0]), dims(found[1]), "broadcast_to_like"), found[0].dtype)
    )


_BROADCAST_TO_LIKE = define(
    "broadcast_to_like",
    arguments=("data", "broadcast_type"),
    relation=_broadcast_like_relation,
    compute=lambda attrs, inputs, out_type: [topi.broadcast_to(inputs[0], inputs[1].shape)],
    reference=lambda attrs, data, like: np.broadcast_to(data, like.shape).copy(),
    gradient=lambda primal, grad: [
        call("collapse_sum_like", grad, primal.args[0]),
        call("zeros_like", primal.args[1]),
    ],
    kind=OpPattern.BROADCAST,
    level=10,
    description="The tensor repeated to the shape of another.",
)


def broadcast_to_like(data: RelayExpr, broadcast_type: RelayExpr) -> Call:
    """The tensor repeated to the shape of another."""
    return Call(_BROADCAST_TO_LIKE, (data, broadcast_type))


def _collapsed(data: Array, shape: Sequence[int]) -> Array:
    """The sum over the axes along which a tensor of ``shape`` was repeated; narrow types add up in wider ones."""
    missing = data.ndim - len(shape)
    axes = tuple(range(missing)) + tuple(
        missing + axis for axis, size in enumerate(shape) if size == 1 and data.shape[missing + axis] != 1
    )
    wide = data if data.dtype.kind in "iub" or data.dtype.itemsize > 2 else data.astype("float32")
    kind = wide.dtype if wide.dtype.kind != "b" else np.dtype("int32")
    return np.asarray(wide.sum(axis=axes, dtype=kind)).reshape(shape).astype(data.dtype)


def _collapse_like_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of collapse_sum_like", "the tensor whose shape is taken")
    if found is None:
        return None
    fits(dims(found[1]), dims(found[0]), "collapse_sum_like")
    return TensorType(found[1].shape, found[0].dtype)


def _collapse_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    data, target = inputs[0], result_shape(out_type)
    missing = len(data.shape) - len(target)
    kept = list(zip(data.shape[missing:], target, strict=True))
    if all(isinstance(wanted, IntImm) or same_extent(extent, wanted) for extent, wanted in kept):
        return [topi.collapse_sum(data, target)]
    # Whether an axis was repeated is known when the kernel is called: then it is summed whole, else element by element.
    repeated = [wanted.equal(1) for _, wanted in kept]
    axes = [reduce_axis((0, extent)) for extent in data.shape[:missing]]
    axes += [
        reduce_axis((0, if_then_else(test, extent, 1)))
        for test, (extent, _) in zip(repeated, kept, strict=True)
    ]
    wide = accumulator_type(data.dtype)

    def element(*i: Any) -> Any:
        places = [
            if_then_else(test, axis.var, index)
            for test, axis, index in zip(repeated, axes[missing:], i, strict=True)
        ]
        value = data(*(axis.var for axis in axes[:missing]), *places)
        return te_sum(cast(wide, value), axis=axes)

    summed: Tensor = compute(target, element, name="T_collapse_sum_red", tag=topi.tag.COMM_REDUCE)
    return [summed if wide is data.dtype else topi.cast(summed, data.dtype)]


def _collapse_gradient(primal: Any, grad: Any) -> list[Any]:
    return [call("broadcast_to_like", grad, primal.args[0]), call("zeros_like", primal.args[1])]


_COLLAPSE_SUM_LIKE = define(
    "collapse_sum_like",
    arguments=("data", "collapse_type"),
    relation=_collapse_like_relation,
    compute=_collapse_compute,
    reference=lambda attrs, data, like: _collapsed(data, like.shape),
    gradient=_collapse_gradient,
    kind=OpPattern.COMM_REDUCE,
    level=10,
    description="The sum over the axes along which a tensor of the other's shape was repeated.",
)


def collapse_sum_like(data: RelayExpr, collapse_type: RelayExpr) -> Call:
    """The sum over the axes along which a tensor of the other's shape was repeated to give this one's."""
    return Call(_COLLAPSE_SUM_LIKE, (data, collapse_type))


def _collapse_to_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of collapse_sum_to", "the shape")
    if found is None:
        return None
    data, wanted = found
    if attrs.shape is not None:
        shape: Shape = attrs.shape
        fits(shape, dims(data), "collapse_sum_to")
    else:
        shape = tuple(AnyDimension() for _ in range(constant_shape(wanted, "the shape")[0]))
    return TensorType(shape, data.dtype)


def copied_vector(name: str, vector: Tensor, length: int) -> list[Tensor]:
    """The shape that a vector holds."""

    def program(builder: Any, ins: Any, outs: Any) -> None:
        for place in range(length):
            outs[0][place] = as_int64(ins[0][place])

    return shape_program(name, [vector], [length], program)


_COLLAPSE_SUM_TO = define(
    "collapse_sum_to",
    arguments=("data", "shape"),
    attrs=InitOpAttrs,
    relation=_collapse_to_relation,
    compute=_collapse_compute,
    reference=lambda attrs, data, shape: _collapsed(data, [int(size) for size in shape]),
    gradient=_collapse_gradient,
    kind=OpPattern.COMM_REDUCE,
    shape_function=lambda attrs, inputs, out_ndims: copied_vector(
        "collapse_sum_to_shape", inputs[1], int(out_ndims[0])
    ),
    data_dependent=(False, True),
    level=10,
    description="The sum over the axes along which a tensor of this shape was repeated.",
)


def collapse_sum_to(data: RelayExpr, shape: Any) -> Call:
    """The sum over the axes along which a tensor of this shape was repeated to give ``data``."""
    given = as_expression(shape)
    values = constant_list(given)
    return Call(_COLLAPSE_SUM_TO, (data, given), InitOpAttrs(None if values is None else tuple(values), ""))


@attributes
class RepeatAttrs(OpAttrs):
    """How often each element is repeated along an axis."""

    repeats: int = 1
    axis: int = 0


def _repeat_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of repeat")
    if data is None:
        return None
    if attrs.repeats < 1:
        raise RelationError(f"repeat: elements are repeated once or more, not {attrs.repeats} times")
    shape = list(dims(data))
    axis = normal_axis(attrs.axis, len(shape))
    shape[axis] = combine(lambda a: a * attrs.repeats, shape[axis])
    return TensorType(shape, data.dtype)


_REPEAT = define(
    "repeat",
    arguments=("data",),
    attrs=RepeatAttrs,
    relation=_repeat_relation,
    compute=lambda attrs, inputs, out_type: [topi.repeat(inputs[0], attrs.repeats, attrs.axis)],
    reference=lambda attrs, data: np.repeat(data, attrs.repeats, attrs.axis),
    kind=OpPattern.BROADCAST,
    description="Each element repeated consecutively along an axis.",
)


def repeat(data: RelayExpr, repeats: int, axis: int) -> Call:
    """Each element repeated consecutively along an axis."""
    return Call(_REPEAT, (data,), RepeatAttrs(repeats, axis))


@attributes
class TileAttrs(OpAttrs):
    """How often the tensor is repeated along each axis."""

    reps: tuple[int, ...] | None = None


def _tile_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    data = tensor(types[0], "the argument of tile")
    if data is None:
        return None
    if any(one < 1 for one in attrs.reps):
        raise RelationError(f"tile: a tensor is repeated once or more along an axis, not {attrs.reps} times")
    shape, reps = dims(data), attrs.reps
    rank = max(len(shape), len(reps))
    shape = (*[1] * (rank - len(shape)), *shape)
    reps = (*[1] * (rank - len(reps)), *reps)
    return TensorType(
        [combine(lambda a, b: a * b, size, times) for size, times in zip(shape, reps, strict=True)],
        data.dtype,
    )


_TILE = define(
    "tile",
    arguments=("data",),
    attrs=TileAttrs,
    relation=_tile_relation,
    compute=lambda attrs, inputs, out_type: [topi.tile(inputs[0], attrs.reps)],
    reference=lambda attrs, data: np.tile(data, attrs.reps),
    kind=OpPattern.BROADCAST,
    description="The whole tensor repeated along axes.",
)


def tile(data: RelayExpr, reps: Any) -> Call:
    """The whole tensor repeated along axes; the shorter of its shape and ``reps`` is filled with ones in front."""
    if is_computed(reps):
        return call("dyn.tile", data, reps)
    return Call(_TILE, (data,), TileAttrs(integers(reps, "tile")))


def _where_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the condition of where", "the first choice", "the second choice")
    if found is None:
        return None
    condition, first, second = found
    if first.dtype is not second.dtype:
        raise RelationError(f"where: element types {first.dtype} and {second.dtype} differ")
    shape = broadcast_shapes(dims(condition), broadcast_shapes(dims(first), dims(second)))
    return TensorType(shape, first.dtype)


def _where_gradient(primal: Any, grad: Any) -> list[Any]:
    condition, first, second = primal.args
    nothing = call("zeros_like", grad)
    return [
        call("zeros_like", condition),
        call("collapse_sum_like", call("where", condition, grad, nothing), first),
        call("collapse_sum_like", call("where", condition, nothing, grad), second),
    ]


_WHERE = define(
    "where",
    arguments=("condition", "x", "y"),
    relation=_where_relation,
    compute=lambda attrs, inputs, out_type: [topi.where(*inputs)],
    reference=lambda attrs, condition, first, second: np.where(condition != 0, first, second),
    gradient=_where_gradient,
    layout=broadcast,
    kind=OpPattern.BROADCAST,
    level=4,
    description="Elements of one tensor where a condition holds, of another elsewhere.",
)


def where(condition: RelayExpr, x: RelayExpr, y: RelayExpr) -> Call:
    """Elements of ``x`` where the condition holds (is not zero), of ``y`` elsewhere; all three are broadcast."""
    for given in (condition, x, y):
        if not isinstance(given, RelayExpr):
            raise ExpressionError(f"where takes graph expressions, not {type(given).__name__}")
    return Call(_WHERE, (condition, x, y))
