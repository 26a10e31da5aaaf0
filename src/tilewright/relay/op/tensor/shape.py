"""Operators that return the shape of a tensor, or another tensor of its shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilewright import topi
from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, define, named_after
from tilewright.relay.op.layout_rules import as_it_is, elementwise, whatever
from tilewright.relay.op.relations import same_type
from tilewright.relay.op.shapes import dims, tensor
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.dtype import DataType
from tilewright.te.tensor import Tensor


@attributes
class ShapeOfAttrs(OpAttrs):
    """The element type of the answer."""

    dtype: str = "int32"


@attributes
class NdarraySizeAttrs(OpAttrs):
    """The element type of the answer."""

    dtype: str = "int32"


def _shape_vector(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensor(types[0], "the argument")
    return found and TensorType((len(dims(found)),), attrs.dtype)


def _size_scalar(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensor(types[0], "the argument")
    return found and TensorType((), attrs.dtype)


def _no_gradient(result: Call, grad: RelayExpr) -> list[RelayExpr]:
    """Nothing depends on the elements."""
    return [zeros_like(result.args[0])]


_shape_of = define(
    "shape_of",
    arguments=("data",),
    attrs=ShapeOfAttrs,
    relation=_shape_vector,
    compute=lambda attrs, inputs, out_type: [topi.shape(inputs[0], attrs.dtype)],
    reference=lambda attrs, data: np.asarray(data.shape, dtype=numpy_dtype(DataType(attrs.dtype))),
    gradient=_no_gradient,
    layout=as_it_is,
    kind=OpPattern.INJECTIVE,
    level=10,
    description="The shape as a vector.",
)

_ndarray_size = define(
    "ndarray_size",
    arguments=("data",),
    attrs=NdarraySizeAttrs,
    relation=_size_scalar,
    compute=lambda attrs, inputs, out_type: [topi.ndarray_size(inputs[0], attrs.dtype)],
    reference=lambda attrs, data: np.asarray(data.size, dtype=numpy_dtype(DataType(attrs.dtype))),
    gradient=_no_gradient,
    layout=whatever,
    kind=OpPattern.INJECTIVE,
    level=10,
    description="The number of elements.",
)


def shape_of(data: RelayExpr, dtype: str = "int32") -> Call:
    """The shape as a vector."""
    return Call(_shape_of, (data,), ShapeOfAttrs(dtype=dtype))


def ndarray_size(data: RelayExpr, dtype: str = "int32") -> Call:
    """The number of elements."""
    return Call(_ndarray_size, (data,), NdarraySizeAttrs(dtype=dtype))


def _filled(name: str, value: int, description: str) -> Callable[[RelayExpr], Call]:
    op = define(
        name,
        arguments=("data",),
        relation=same_type,
        compute=lambda attrs, inputs, out_type: [topi.full_like(inputs[0], value)],
        reference=lambda attrs, data: np.full(data.shape, value, dtype=data.dtype),
        gradient=_no_gradient,
        layout=elementwise,
        kind=OpPattern.ELEMWISE,
        level=1,
        description=description,
    )

    def made(data: RelayExpr) -> Call:
        return Call(op, (data,))

    return named_after(op, made)


zeros_like = _filled("zeros_like", 0, "Zeros in the shape and type of a tensor.")
ones_like = _filled("ones_like", 1, "Ones in the shape and type of a tensor.")


def copy_shape_func(attrs: Any, inputs: Sequence[Tensor], _: Sequence[Any]) -> list[Tensor]:
    """The shape function of operators whose result has the shape of the argument."""
    return [topi.identity(inputs[0])]
