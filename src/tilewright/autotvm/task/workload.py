"""Workloads: the name and the arguments of a task, as records keep them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import te
from tilewright.ir.expr import FloatImm, IntImm, IterVar, StringImm, Var
from tilewright.support.dtype import DataType
from tilewright.te.tensor import Tensor
from tilewright.topi.utils import get_const_tuple

TENSOR = "TENSOR"


def serialize_args(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments as hashable values: a tensor is ``("TENSOR", shape, dtype)``."""
    return tuple(_encoded(argument) for argument in args)


def _encoded(value: Any) -> Any:
    if isinstance(value, Tensor):
        return (TENSOR, get_const_tuple(value.shape), str(value.dtype))
    if isinstance(value, (tuple, list)):
        return tuple(_encoded(part) for part in value)
    if isinstance(value, DataType):
        return str(value)
    if isinstance(value, (str, bool, int, float)) or value is None:
        return str(value) if isinstance(value, str) else value
    if isinstance(value, (IntImm, FloatImm, StringImm)):
        return value.value
    if isinstance(value, Var):
        return value.name
    if isinstance(value, IterVar):
        return value.var.name
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(
        f"a task cannot have an argument of type {type(value).__name__}: it takes tensors, numbers, strings and "
        "lists of them"
    )


def deserialize_args(args: Sequence[Any]) -> list[Any]:
    """The inverse: tensors become placeholders."""
    return [_decoded(argument) for argument in args]


def _decoded(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        if len(value) == 3 and value[0] == TENSOR:
            return te.placeholder(shape=tuple(value[1]), dtype=value[2])
        return [_decoded(part) for part in value]
    return value


def args_to_workload(args: Sequence[Any], task_name: str | None = None) -> tuple[Any, ...]:
    """The workload of arguments, which records and dispatch contexts are asked by."""
    encoded = serialize_args(args)
    return encoded if task_name is None else (task_name, *encoded)
