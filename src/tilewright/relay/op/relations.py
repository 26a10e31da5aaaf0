"""Type relations that many operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import IncompleteType, TupleType, Type
from tilewright.relay.op.definition import RelationError
from tilewright.relay.op.shapes import Shape, broadcast_shapes, dims, normal_axes, tensor, tensors
from tilewright.runtime.registry import register_func


def any_type(types: Sequence[Type], attrs: Any) -> Type | None:
    """The result has the type of the first argument, of whatever kind it is."""
    return None if isinstance(types[0], IncompleteType) else types[0]


def same_type(types: Sequence[Type], attrs: Any) -> Type | None:
    """The result has the type of the only, or the first, argument."""
    return tensor(types[0], "the argument")


def number_type(types: Sequence[Type], attrs: Any) -> Type | None:
    """As ``same_type``, for numbers."""
    found = tensor(types[0], "the argument")
    if found is not None and found.dtype.is_bool:
        raise RelationError("the argument is of type bool, and numbers are needed; convert it with cast")
    return found


def floating_type(types: Sequence[Type], attrs: Any) -> Type | None:
    """As ``same_type``, for floating-point numbers."""
    found = tensor(types[0], "the argument")
    if found is not None and found.dtype.is_integral:
        raise RelationError(
            f"the argument is of type {found.dtype}, and floating-point numbers are needed; convert it with cast"
        )
    return found


def boolean_result(types: Sequence[Type], attrs: Any) -> Type | None:
    """A result of type bool in the shape of the argument."""
    found = tensor(types[0], "the argument")
    return found and TensorType(found.shape, "bool")


def nothing(types: Sequence[Type], attrs: Any) -> Type | None:
    """The relation of operators that are called for their effect: the empty tuple."""
    return TupleType(())


def broadcast(types: Sequence[Type], attrs: Any) -> Type | None:
    """NumPy's broadcasting of two tensors of one element type."""
    found = _pair(types)
    return found and TensorType(broadcast_shapes(dims(found[0]), dims(found[1])), found[0].dtype)


def broadcast_numbers(types: Sequence[Type], attrs: Any) -> Type | None:
    """As ``broadcast``, for numbers."""
    made = broadcast(types, attrs)
    if isinstance(made, TensorType) and made.dtype.is_bool:
        raise RelationError("the operands are of type bool, and numbers are needed; convert them with cast")
    return made


def broadcast_integers(types: Sequence[Type], attrs: Any) -> Type | None:
    """As ``broadcast``, for integers and bool."""
    made = broadcast(types, attrs)
    if isinstance(made, TensorType) and not made.dtype.is_integral:
        raise RelationError(f"the operands are of type {made.dtype}, and integers are needed")
    return made


def broadcast_comparison(types: Sequence[Type], attrs: Any) -> Type | None:
    """As ``broadcast``, with a result of type bool."""
    found = _pair(types)
    return found and TensorType(broadcast_shapes(dims(found[0]), dims(found[1])), "bool")


def _pair(types: Sequence[Type]) -> tuple[TensorType, TensorType] | None:
    found = tensors(types, "the left operand", "the right operand")
    if found is None:
        return None
    left, right = found
    if left.dtype is not right.dtype:
        raise RelationError(f"the operands have different element types, {left.dtype} and {right.dtype}")
    return left, right


def reduced_axes(axis: Sequence[int] | int | None, rank: int, exclude: bool) -> tuple[int, ...]:
    """The axes that a reduction is over, from its attributes: for None and for no axes, all of them."""
    if axis is None or (not isinstance(axis, int) and len(axis) == 0):
        return tuple(range(rank))
    return normal_axes(axis, rank, exclude)


def reduced_shape(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """The shape after reducing axes; with keepdims, they have size one."""
    if keepdims:
        return tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
    return tuple(extent for axis, extent in enumerate(shape) if axis not in axes)


for _name, _relation in {
    "Identity": same_type,
    "Broadcast": broadcast,
    "BroadcastComp": broadcast_comparison,
}.items():
    Op.named_relations[_name] = _relation
    register_func(f"tvm.relay.type_relation.{_name}", _relation)
