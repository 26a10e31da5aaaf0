"""Calls of PyTorch's operators by position, as TVM's converters take them, bound to the operators' schemas."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.relay.frontend.torch import ops as _converters
from tilewright.relay.frontend.torch.node import Scope, TorchNode
from tilewright.relay.frontend.torch.package import torch_package
from tilewright.relay.frontend.torch.registry import find_converter
from tilewright.support.errors import OpNotImplemented

assert _converters  # importing it registers the converters


def _fits(value: Any, kind: str) -> bool:
    """True if a value can be an argument of a type."""
    if value is None:
        return kind.startswith("Optional")
    inner = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional[") else kind
    if isinstance(value, (list, tuple)):
        return inner.startswith("List") and all(_fits(one, inner[5:].removesuffix("]")) for one in value)
    if isinstance(value, RelayExpr):
        return not inner.startswith(("List", "str"))
    if isinstance(value, bool):
        return inner in ("bool", "number", "int")
    if isinstance(value, int):
        return inner in ("int", "number", "float") or inner.startswith("List[int")
    if isinstance(value, float):
        return inner in ("float", "number")
    return isinstance(value, str) == (inner == "str")


def _is_exact(value: Any, kind: str) -> bool:
    """True if tensors stand where the schema has tensors."""
    return isinstance(value, RelayExpr) == ("Tensor" in kind) or value is None


def _schema(operator: str, values: Sequence[Any]) -> Any | None:
    """The schema that takes these arguments; the one with tensors in their places first."""
    known = [
        one
        for one in torch_package()._C._jit_get_schemas_for_operator(operator)
        if not any(argument.is_out for argument in one.arguments)
    ]
    fitting = []
    for one in known:
        arguments = list(one.arguments)
        required = sum(not argument.has_default_value() for argument in arguments)
        if required <= len(values) <= len(arguments) and all(
            _fits(value, str(argument.type)) for value, argument in zip(values, arguments, strict=False)
        ):
            fitting.append(one)
    exact = [
        one
        for one in fitting
        if all(_is_exact(value, str(kind.type)) for value, kind in zip(values, one.arguments, strict=False))
    ]
    return next(iter(exact or fitting), None)


def call_operator(scope: Scope, operator: str, values: Sequence[Any]) -> Any:
    """The expression of ``"aten::relu"`` for arguments by position, those at the end left out at will."""
    schema = _schema(operator, values)
    found = find_converter(operator, "" if schema is None else schema.overload_name)
    if found is None:
        raise OpNotImplemented(f"The following operators are not implemented: {operator}")
    node = TorchNode(operator, operator, scope)
    if schema is None:
        # Of libraries that are not installed (torchvision) PyTorch has no schema: the converter's order is theirs.
        names = list(inspect.signature(found.function).parameters)[1:]
        with node.conversion():
            return found.function(node, **dict(zip(names, values, strict=False)))
    arguments = list(schema.arguments)
    defaults = {one.name: one.default_value for one in arguments if one.has_default_value()}
    given = {one.name: value for one, value in zip(arguments, values, strict=False)}
    with node.conversion():
        return found(node, given, defaults)
