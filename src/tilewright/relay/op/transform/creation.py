"""Operators that create tensors from numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.expr import Any as AnyDimension
from tilewright.ir.operators import cast, not_equal
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.shapes import dims, normal_axis, tensor, tensors
from tilewright.relay.op.transform.support import (
    Array,
    array_type,
    constant_list,
    integers,
    is_computed,
    require,
    result_shape,
    shape_program,
)
from tilewright.support.errors import ExpressionError
from tilewright.te.operation import compute
from tilewright.te.tensor import Tensor
from tilewright.tir.op import ceil, if_then_else


@attributes
class InitOpAttrs(OpAttrs):
    """The shape of the tensor to make, and its element type ("" for that of the value it is filled with)."""

    shape: tuple[int, ...] | None = None
    dtype: str = ""


def _scalar(given: Type, what: str) -> TensorType | None:
    found = tensor(given, what)
    if found is not None and found.shape:
        raise RelationError(f"{what} is a scalar, not {found}")
    return found


def _full_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    value = _scalar(types[0], "the value of full")
    return value and TensorType(attrs.shape, attrs.dtype or value.dtype)


_FULL = define(
    "full",
    arguments=("fill_value",),
    attrs=InitOpAttrs,
    relation=_full_relation,
    compute=lambda attrs, inputs, out_type: [topi.full(result_shape(out_type), out_type.dtype, inputs[0])],
    reference=lambda attrs, value: np.full(
        attrs.shape, value, array_type(attrs.dtype) if attrs.dtype else value.dtype
    ),
    gradient=lambda primal, grad: [call("cast_like", call("sum", grad), primal.args[0])],
    kind=OpPattern.ELEMWISE,
    description="A tensor of one value.",
)


def full(fill_value: RelayExpr, shape: Any = (), dtype: str = "") -> Call:
    """A tensor of one value; the shape may be an expression. Without ``dtype`` it has the type of the value."""
    if is_computed(shape):
        return call("dyn.full", fill_value, shape, dtype=str(dtype))
    return Call(_FULL, (fill_value,), InitOpAttrs(integers(shape, "full"), str(dtype)))


def _full_like_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the argument of full_like", "the value")
    return None if found is None or _scalar(types[1], "the value of full_like") is None else found[0]


_FULL_LIKE = define(
    "full_like",
    arguments=("data", "fill_value"),
    relation=_full_like_relation,
    compute=lambda attrs, inputs, out_type: [topi.full_like(inputs[0], inputs[1])],
    reference=lambda attrs, data, value: np.full_like(data, value),
    kind=OpPattern.ELEMWISE,
    description="A tensor of the shape and type of another, of one value.",
)


def full_like(data: RelayExpr, fill_value: RelayExpr) -> Call:
    """A tensor of the shape and type of another, of one value."""
    return Call(_FULL_LIKE, (data, fill_value))


def _init_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    return TensorType(attrs.shape, attrs.dtype)


def _constant(name: str, value: int) -> None:
    define(
        name,
        arguments=(),
        attrs=InitOpAttrs,
        relation=_init_relation,
        compute=lambda attrs, inputs, out_type: [topi.full(result_shape(out_type), out_type.dtype, value)],
        reference=lambda attrs: np.full(attrs.shape, value, array_type(attrs.dtype)),
        gradient=lambda primal, grad: [],
        kind=OpPattern.ELEMWISE,
        description=f"A tensor of {name}.",
    )


_constant("zeros", 0)
_constant("ones", 1)


@attributes
class ArangeAttrs(OpAttrs):
    """The numbers from which the length follows, None where the program computes them; and the element type."""

    start: float | None = None
    stop: float | None = None
    step: float | None = None
    dtype: str = "float32"


def _count(start: float, stop: float, step: float) -> int:
    """How many numbers there are; exact for integers of any size."""
    if step == 0:
        raise RelationError("arange: the step is zero")
    if all(float(value).is_integer() for value in (start, stop, step)):
        return max(0, -((int(start) - int(stop)) // int(step)))
    return max(0, math.ceil((stop - start) / step))


def _arange_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    for given, name in zip(types, ("start", "stop", "step"), strict=True):
        if _scalar(given, f"{name} of arange") is None:
            return None
    if attrs.start is None or attrs.stop is None or attrs.step is None:
        return TensorType([AnyDimension()], attrs.dtype)
    return TensorType([_count(attrs.start, attrs.stop, attrs.step)], attrs.dtype)


def _arange_compute(attrs: Any, inputs: Sequence[Tensor], out_type: Any) -> list[Tensor]:
    start, _, step = inputs
    kind = out_type.dtype
    made: Tensor = compute(
        result_shape(out_type),
        lambda i: cast(kind, start()) + cast(kind, step()) * cast(kind, i),
        name="T_arange",
        tag=topi.tag.INJECTIVE,
    )
    return [made]


def _arange_reference(attrs: Any, start: Array, stop: Array, step: Array) -> Array:
    kind = array_type(attrs.dtype)
    places = np.arange(_count(start.item(), stop.item(), step.item()))
    return np.asarray(start.astype(kind) + step.astype(kind) * places.astype(kind)).astype(kind)


def _arange_shape(attrs: Any, inputs: Sequence[Tensor], out_ndims: Any) -> list[Tensor]:
    def program(builder: Any, ins: Any, outs: Any) -> None:
        start, stop, step = (one[0] for one in ins)
        if all(one.dtype.is_integral for one in (start, stop, step)):
            first, last, by = (cast("int64", one) for one in (start, stop, step))
            require(builder, not_equal(by, 0), "arange: the step is zero")
            forwards = (last - first + by - 1) // by
            backwards = (first - last - by - 1) // (-by)
            count = if_then_else(by > 0, forwards, backwards)
        else:
            first, last, by = (cast("float64", one) for one in (start, stop, step))
            require(builder, not_equal(by, 0.0), "arange: the step is zero")
            count = cast("int64", ceil((last - first) / by))
        outs[0][0] = if_then_else(count < 0, cast("int64", 0), count)

    return shape_program("arange_shape", inputs, [1], program)


def _arange_gradient(primal: Any, grad: Any) -> list[Any]:
    """Every element moves with the start; element i with i times the step. The stop only decides their number."""
    start, stop, step = primal.args
    ones = call("ones_like", grad)
    position = call("cumsum", ones, axis=0) - ones
    return [
        call("cast_like", call("sum", grad), start),
        call("zeros_like", stop),
        call("cast_like", call("sum", grad * position), step),
    ]


_ARANGE = define(
    "arange",
    arguments=("start", "stop", "step"),
    attrs=ArangeAttrs,
    relation=_arange_relation,
    compute=_arange_compute,
    reference=_arange_reference,
    gradient=_arange_gradient,
    kind=OpPattern.INJECTIVE,
    shape_function=_arange_shape,
    data_dependent=True,
    description="Numbers at equal distances.",
)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: str = "float32") -> Call:
    """``start``, ``start + step``, ... up to ``stop``, which is left out; with one number, from 0 up to it."""
    if stop is None:
        start, stop = 0, start
    given = [
        one if isinstance(one, RelayExpr) else const(one, dtype)
        for one in (start, stop, 1 if step is None else step)
    ]
    numbers = [(constant_list(one) or [None])[0] if isinstance(one, Constant) else None for one in given]
    return Call(_ARANGE, given, ArangeAttrs(numbers[0], numbers[1], numbers[2], str(dtype)))


@attributes
class OneHotAttrs(OpAttrs):
    """The size of the new axis, where it goes (-1 for the last), and the element type."""

    depth: int = 0
    axis: int = -1
    dtype: str = "float32"


def one_hot_type(types: Sequence[TensorType], depth: Any, attrs: Any) -> TensorType:
    """The type of the result, whose new axis has size ``depth``."""
    indices, on, off = types[:3]
    if on.shape or off.shape:
        raise RelationError(f"on_value and off_value of one_hot are scalars, not {on} and {off}")
    if not indices.dtype.is_integral:
        raise RelationError(f"the indices of one_hot are integers, not {indices.dtype}")
    shape = dims(indices)
    axis = normal_axis(attrs.axis, len(shape) + 1)
    return TensorType([*shape[:axis], depth, *shape[axis:]], attrs.dtype)


def _one_hot_relation(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensors(types, "the indices of one_hot", "on_value", "off_value")
    if found is None:
        return None
    if attrs.depth < 1:
        raise RelationError(f"one_hot: a depth of {attrs.depth} can not be")
    return one_hot_type(found, attrs.depth, attrs)


def one_hot_array(indices: Array, on: Array, off: Array, depth: int, axis: int, dtype: str) -> Array:
    """The reference: ``on`` where the index along the new axis is that of ``indices``, else ``off``."""
    place = axis if axis >= 0 else indices.ndim
    counted = np.arange(depth).reshape([depth if one == place else 1 for one in range(indices.ndim + 1)])
    kind = array_type(dtype)
    return np.where(np.expand_dims(indices, place) == counted, on.astype(kind), off.astype(kind))


def one_hot_compute(inputs: Sequence[Tensor], depth: Any, attrs: Any) -> Tensor:
    """The tensor expression, for a depth that may be a variable."""
    indices, on, off = inputs[:3]
    axis = attrs.axis if attrs.axis >= 0 else len(indices.shape)
    shape = [*indices.shape[:axis], depth, *indices.shape[axis:]]

    def element(*i: Any) -> Any:
        index = indices(*i[:axis], *i[axis + 1 :])
        chosen = if_then_else(index.equal(cast(index.dtype, i[axis])), on(), off())
        return cast(attrs.dtype, chosen)

    made: Tensor = compute(shape, element, name="T_one_hot", tag=topi.tag.INJECTIVE)
    return made


def one_hot_gradient(primal: Any, grad: Any) -> list[Any]:
    """Nothing for the indices; for the two values, the sum of the gradient where each stands."""
    indices, on, off, *rest = primal.args
    attrs = primal.attrs.replace(dtype="bool")
    mask = Call(primal.op, (indices, const(True), const(False), *rest), attrs)
    nothing = call("zeros_like", grad)
    return [
        call("zeros_like", indices),
        call("cast_like", call("sum", call("where", mask, grad, nothing)), on),
        call("cast_like", call("sum", call("where", mask, nothing, grad)), off),
        *(call("zeros_like", one) for one in rest),
    ]


_ONE_HOT = define(
    "one_hot",
    arguments=("indices", "on_value", "off_value"),
    attrs=OneHotAttrs,
    relation=_one_hot_relation,
    compute=lambda attrs, inputs, out_type: [one_hot_compute(inputs, attrs.depth, attrs)],
    reference=lambda attrs, indices, on, off: one_hot_array(
        indices, on, off, attrs.depth, attrs.axis, attrs.dtype
    ),
    gradient=one_hot_gradient,
    kind=OpPattern.OUT_ELEMWISE_FUSABLE,
    level=10,
    description="One value where the index along a new axis is the given one, another elsewhere.",
)


def one_hot(indices: RelayExpr, on_value: Any, off_value: Any, depth: Any, axis: int, dtype: str) -> Call:
    """``on_value`` where the index along a new axis of size ``depth`` is that of ``indices``, else ``off_value``.

    An index out of range gives ``off_value`` everywhere.
    """
    values = [one if isinstance(one, RelayExpr) else const(one, dtype) for one in (on_value, off_value)]
    if is_computed(depth):
        return call("dyn.one_hot", indices, *values, depth, axis=axis, dtype=str(dtype))
    attrs = OneHotAttrs(integers(depth, "one_hot")[0], axis, str(dtype))
    if attrs.axis < -1:
        raise ExpressionError(f"one_hot: the axis is -1 or counted from the front, not {axis}")
    return Call(_ONE_HOT, (indices, *values), attrs)
