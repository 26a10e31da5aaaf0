"""Calls of operators by name, for definitions that use operators of other families.

Gradients and composed operators of one family call those of another, and vice versa. By name, no family has to import
another.
"""

from __future__ import annotations

from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.expr import Call, Constant, const
from tilewright.relay.op.attributes import OpAttrs
from tilewright.support.errors import OpAttributeInvalid, OpError


def call(name: str, *arguments: RelayExpr, **attributes: Any) -> Call:
    """A call of the operator of this name; attributes that are not given have their defaults."""
    op = Op.get(name)
    made: type[OpAttrs] | None = op.get_attr("AttrsClass")
    if made is None:
        if attributes:
            raise OpAttributeInvalid(f"{name} has no attributes, {', '.join(sorted(attributes))} were given")
        return Call(op, arguments)
    return Call(op, arguments, made.from_mapping(attributes, name))


def number(value: float, like: RelayExpr) -> Constant:
    """A scalar constant of the element type that inference found for ``like``."""
    return const(value, tensor_type(like).dtype)


def tensor_type(value: RelayExpr) -> TensorType:
    """The type that inference found, which must be that of a tensor."""
    found = value.checked_type
    if not isinstance(found, TensorType):
        raise OpError(f"a tensor is needed here, not a value of type {found}")
    return found
