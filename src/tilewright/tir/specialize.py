"""Specialisation of a function for known arguments.

A scalar parameter with a value is removed, and its value is substituted. A buffer parameter with a buffer stays; the
variables in its shape, strides and offset take the values of the given buffer. Its element type stays: the given buffer
describes a place only, and ``decl_buffer([16])`` says nothing about types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tilewright.ir import operators
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import PrimExpr, Var
from tilewright.ir.structural import structural_equal
from tilewright.support.errors import ExpressionError
from tilewright.support.recursion import recursion_room
from tilewright.tir.folding import FoldingSubstitute

if TYPE_CHECKING:
    from tilewright.tir.function import PrimFunc


def specialize(function: PrimFunc, param_map: Mapping[Var, Any]) -> PrimFunc:
    """The function with parameters fixed: a scalar to a value, a buffer to the shape of another."""
    values: dict[Var, PrimExpr] = {}
    removed: set[Var] = set()
    for parameter, given in param_map.items():
        if not any(parameter is each for each in function.params):
            raise ExpressionError(
                f"{parameter} is not a parameter of the function; it has {_names(function.params)}"
            )
        if isinstance(given, Buffer):
            _match_buffers(function, parameter, given, values)
        else:
            if parameter in function.buffer_map:
                raise ExpressionError(
                    f"parameter {parameter} is bound to a buffer: specialise it with a buffer, not {given!r}"
                )
            _assign(values, parameter, operators.as_expr(given), f"parameter {parameter}")
            removed.add(parameter)
    if not values:
        return function
    with recursion_room():
        substitution = FoldingSubstitute(values)
        buffers = {
            parameter: substitution.visit(buffer)
            for parameter, buffer in function.buffer_map.items()
            if parameter not in removed
        }
        body = substitution.visit(function.body)
    kept = tuple(parameter for parameter in function.params if parameter not in values)
    return function.replace(params=kept, buffer_map=buffers, body=body)


def _names(variables: tuple[Var, ...]) -> str:
    return ", ".join(variable.name for variable in variables) or "none"


def _match_buffers(function: PrimFunc, parameter: Var, given: Buffer, values: dict[Var, PrimExpr]) -> None:
    """Take the values of the variables in a parameter's buffer from the given one."""
    declared = function.buffer_map.get(parameter)
    if declared is None:
        raise ExpressionError(f"parameter {parameter} is a scalar: specialise it with a value, not a buffer")
    where = f"buffer {declared.name}"
    if len(declared.shape) != len(given.shape):
        raise ExpressionError(
            f"{where} has {len(declared.shape)} dimensions, the given buffer {len(given.shape)}"
        )
    pairs = list(zip(declared.shape, given.shape, strict=True))
    if declared.strides and given.strides:
        pairs += list(zip(declared.strides, given.strides, strict=True))
    pairs.append((declared.elem_offset, given.elem_offset))
    for expected, actual in pairs:
        if isinstance(expected, Var):
            _assign(values, expected, actual, where)
        elif not structural_equal(expected, actual):
            raise ExpressionError(f"{where}: {expected} cannot be specialised to {actual}")


def _assign(values: dict[Var, PrimExpr], variable: Var, value: PrimExpr, where: str) -> None:
    """Fix a variable once; a second value must be the same."""
    if value.dtype is not variable.dtype:
        value = operators.cast(variable.dtype, value)
    known = values.get(variable)
    if known is not None and not structural_equal(known, value):
        raise ExpressionError(f"{where}: {variable} cannot be both {known} and {value}")
    values[variable] = value
