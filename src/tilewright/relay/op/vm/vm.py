"""The operators that programs of the virtual machine call: kernels, shape functions, shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import Type
from tilewright.relay.expr import Call
from tilewright.relay.op.attributes import OpAttrs, attributes
from tilewright.relay.op.definition import OpPattern, define
from tilewright.relay.op.relations import nothing
from tilewright.relay.op.shapes import dims, tensor
from tilewright.relay.op.tensor.shape import ShapeOfAttrs


@attributes
class ShapeFuncAttrs(OpAttrs):
    """For each input, whether it is one itself (1) or its shape (0)."""

    is_input: tuple[int, ...] = ()


@attributes
class ReshapeTensorAttrs(OpAttrs):
    """The known part of the new shape."""

    newshape: tuple[Any, ...] = ()


def _shape_type(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensor(types[0], "the argument")
    return found and TensorType((len(dims(found)),), "int64")


def _reshaped_type(types: Sequence[Type], attrs: Any) -> Type | None:
    found = tensor(types[0], "the data")
    return found and TensorType(attrs.newshape, found.dtype)


_SHAPE_OF = define(
    "vm.shape_of",
    arguments=("tensor",),
    attrs=ShapeOfAttrs,
    relation=_shape_type,
    reference=lambda attrs, value: np.asarray(value.shape, dtype=np.int64),
    kind=OpPattern.OPAQUE,
    level=10,
    description="The shape as a vector, on the host.",
)
_INVOKE = define(
    "vm.invoke_tvm_op",
    arguments=("op", "inputs", "outputs"),
    relation=nothing,
    reference=None,
    kind=OpPattern.OPAQUE,
    stateful=True,
    level=10,
    description="Runs a kernel on tensors, which writes others.",
)
_SHAPE_FUNC = define(
    "vm.shape_func",
    arguments=("func", "inputs", "outputs"),
    attrs=ShapeFuncAttrs,
    relation=nothing,
    reference=None,
    kind=OpPattern.OPAQUE,
    stateful=True,
    level=10,
    description="Runs the shape function of a kernel.",
)
_RESHAPE = define(
    "vm.reshape_tensor",
    arguments=("data", "shape"),
    attrs=ReshapeTensorAttrs,
    relation=_reshaped_type,
    reference=lambda attrs, data, shape: data.reshape(tuple(shape)),
    kind=OpPattern.OPAQUE,
    noncomputational=True,
    level=10,
    description="The same memory in another shape.",
)


def shape_of(expr: RelayExpr) -> Call:
    """The shape as a vector of int64."""
    return Call(_SHAPE_OF, (expr,), ShapeOfAttrs("int64"))


def invoke_tvm_op(func: RelayExpr, inputs: RelayExpr, outputs: RelayExpr) -> Call:
    """Runs a kernel: ``inputs`` are a tuple of what it reads, ``outputs`` of what it writes."""
    return Call(_INVOKE, (func, inputs, outputs))


def shape_func(
    func: RelayExpr, inputs: RelayExpr, outputs: RelayExpr, is_inputs: Sequence[bool | int]
) -> Call:
    """Runs the shape function of a kernel. For each input, ``is_inputs`` says whether it is the tensor itself or its
    shape."""
    attrs = ShapeFuncAttrs(tuple(int(one) for one in is_inputs))
    return Call(_SHAPE_FUNC, (func, inputs, outputs), attrs)


def reshape_tensor(data: RelayExpr, shape: RelayExpr, newshape: Sequence[Any]) -> Call:
    """The memory of ``data`` in another shape: ``shape`` is computed, ``newshape`` is what is known of it."""
    return Call(_RESHAPE, (data, shape), ReshapeTensorAttrs(tuple(newshape)))
