"""Converting Python values to values of programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.ir import operators
from tilewright.ir.container import Array, Map
from tilewright.runtime.packed_func import convert_to_tvm_func
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Node, Object
from tilewright.support.span import Span


def convert(value: Any, span: Span | None = None) -> Any:
    """A number as a constant, a sequence as an Array, a dictionary as a Map, a function of Python as a packed one;
    strings and nodes stay.

    What stands for an expression (a tensor element, an axis, a comparison) becomes one.
    """
    if value is None or isinstance(value, (str, Object)):
        return value
    if isinstance(value, (bool, int, float)):
        return operators.const(value, span=span)
    if isinstance(value, (list, tuple)):
        return Array([convert(item) for item in value])
    if isinstance(value, Mapping):
        return Map(
            {
                key if isinstance(key, (str, Node)) else convert(key): convert(item)
                for key, item in value.items()
            }
        )
    if hasattr(value, "asobject"):
        return value.asobject()
    if callable(value):
        return convert_to_tvm_func(value)
    try:
        return operators.as_expr(value)
    except ExpressionError:
        raise ExpressionError(
            f"{value!r} of type {type(value).__name__} cannot be part of a program", span=span
        ) from None
