"""Operators that change the element type."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright import topi
from tilewright.ir.attrs import Attrs
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.calls import call
from tilewright.relay.op.definition import OpPattern, RelationError, define
from tilewright.relay.op.layout_rules import elementwise
from tilewright.relay.op.shapes import tensor, tensors
from tilewright.relay.op.transform.layout_rules import first_follows
from tilewright.relay.op.transform.support import array_type
from tilewright.support.dtype import DataType
from tilewright.support.numbers import convert_array


@attributes
class CastAttrs(OpAttrs):
    """The type to convert to."""

    dtype: str = "float32"


def _cast_relation(types: Sequence[Type], attrs: Attrs) -> Type | None:
    data = tensor(types[0], "the argument of cast")
    return data and TensorType(data.shape, attrs["dtype"])


_CAST = define(
    "cast",
    arguments=("data",),
    attrs=CastAttrs,
    relation=_cast_relation,
    compute=lambda attrs, inputs, out_type: [topi.cast(inputs[0], attrs.dtype)],
    reference=lambda attrs, data: convert_array(data, array_type(attrs.dtype)),
    gradient=lambda primal, grad: [call("cast_like", grad, primal.args[0])],
    layout=elementwise,
    kind=OpPattern.ELEMWISE,
    description="The elements converted to another type.",
)


def cast(data: RelayExpr, dtype: str) -> Call:
    """The elements converted to another type.

    Floats become the integers next towards zero; beyond the range of the integer type they become its nearer end, and
    NaN becomes zero. Integers wrap around, floats round to the nearest, and everything but zero is true.
    """
    return Call(_CAST, (data,), CastAttrs(dtype=str(dtype)))


def _cast_like_relation(types: Sequence[Type], attrs: Attrs) -> Type | None:
    found = tensors(types, "the argument of cast_like", "the tensor whose type is taken")
    return None if found is None else TensorType(found[0].shape, found[1].dtype)


_CAST_LIKE = define(
    "cast_like",
    arguments=("data", "dtype_like"),
    relation=_cast_like_relation,
    compute=lambda attrs, inputs, out_type: [topi.cast(inputs[0], inputs[1].dtype)],
    reference=lambda attrs, data, like: convert_array(data, like.dtype),
    gradient=lambda primal, grad: [
        call("cast_like", grad, primal.args[0]),
        call("zeros_like", primal.args[1]),
    ],
    layout=first_follows,
    kind=OpPattern.ELEMWISE,
    description="The elements converted to the type of another tensor.",
)


def cast_like(data: RelayExpr, dtype_like: RelayExpr) -> Call:
    """The elements converted to the type of another tensor."""
    return Call(_CAST_LIKE, (data, dtype_like))


def _reinterpret_relation(types: Sequence[Type], attrs: Attrs) -> Type | None:
    data = tensor(types[0], "the argument of reinterpret")
    if data is None:
        return None
    wanted = DataType(attrs["dtype"])
    if wanted.bits != data.dtype.bits:
        raise RelationError(
            f"reinterpret keeps the size of elements: {data.dtype} is not as wide as {wanted}"
        )
    return TensorType(data.shape, wanted)


_REINTERPRET = define(
    "reinterpret",
    arguments=("data",),
    attrs=CastAttrs,
    relation=_reinterpret_relation,
    compute=lambda attrs, inputs, out_type: [topi.reinterpret(inputs[0], attrs.dtype)],
    reference=lambda attrs, data: data.view(array_type(attrs.dtype)),
    layout=elementwise,
    kind=OpPattern.ELEMWISE,
    description="The bits of the elements taken as another type of the same size.",
)


def reinterpret(data: RelayExpr, dtype: str) -> Call:
    """The bits of the elements taken as another type of the same size."""
    return Call(_REINTERPRET, (data,), CastAttrs(dtype=str(dtype)))
