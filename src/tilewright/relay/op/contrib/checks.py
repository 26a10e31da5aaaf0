"""Checks that backends share, each with the reason for a refusal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType
from tilewright.relay.expr import Call, Constant
from tilewright.relay.op.shapes import dims, known

Check = Callable[[Call], str | None]


def tensors_of(kind: Any) -> list[Any]:
    """The tensors of a type, tuples flattened."""
    if isinstance(kind, TupleType):
        return [tensor for part in kind.fields for tensor in tensors_of(part)]
    return [kind]


def of_type(*dtypes: str) -> Check:
    """Every tensor has constant sizes, at least one element, and one of the data types."""

    def check(call: Call) -> str | None:
        kinds = [call.checked_type, *(argument.checked_type for argument in call.args)]
        for kind in (tensor for one in kinds for tensor in tensors_of(one)):
            if not isinstance(kind, TensorType):
                return f"a value is {kind}, not a tensor"
            if not known(*dims(kind)):
                return f"a size of {kind} is not known"
            if str(kind.dtype) not in dtypes:
                return f"the data type is {kind.dtype}, not {' or '.join(dtypes)}"
            if 0 in kind.concrete_shape:
                return "a tensor has no elements"
        return None

    return check


def rank(*allowed: int) -> Check:
    """The first argument has one of these numbers of dimensions."""

    def check(call: Call) -> str | None:
        found = len(shape_of(call.args[0]))
        return None if found in allowed else f"the tensor has {found} dimensions, not {allowed}"

    return check


def layout(**expected: str) -> Check:
    """Attributes that name layouts have these values (empty means the same as the data's)."""

    def check(call: Call) -> str | None:
        for name, wanted in expected.items():
            found = str(call.attrs[name]) if call.attrs is not None else ""
            if found not in (wanted, "") or (not found and not name.startswith("out")):
                return f"{name} is {found}, not {wanted}"
        return None

    return check


def constant(position: int) -> Check:
    """An argument, such as the weights, is a constant."""

    def check(call: Call) -> str | None:
        return None if isinstance(call.args[position], Constant) else f"argument {position} is not a constant"

    return check


def all_of(*checks: Check) -> Check:
    """The first reason that any of them has."""

    def check(call: Call) -> str | None:
        for one in checks:
            reason = one(call)
            if reason is not None:
                return reason
        return None

    return check


def shape_of(expr: Any) -> tuple[int, ...]:
    """The constant shape of a typed expression."""
    return tuple(int(extent) for extent in expr.checked_type.concrete_shape)
