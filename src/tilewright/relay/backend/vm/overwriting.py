"""Calls of kernels whose result takes the memory of an argument, so that an output is in the memory of an input."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.relay.analysis import free_vars
from tilewright.relay.backend.in_place import Step, in_place_parameters, named_pairs, overwriting_steps
from tilewright.relay.backend.te_compiler import operator_names
from tilewright.relay.backend.vm.kernels import is_view
from tilewright.relay.expr import Call, Constant, Let, Tuple, TupleGetItem, Var
from tilewright.relay.function import Function
from tilewright.relay.output_names import flat_types, output_names, unnamed_output


def overwriting_calls(
    main: Function, device_of: Callable[[RelayExpr], int], in_place: Mapping[str, str]
) -> dict[Call, int]:
    """The calls that write into the memory of inputs, each with the place of the argument that it overwrites; an error
    that says why where an output cannot be in the memory of the input that ``in_place`` names for it.

    ``main`` is in A-normal form.
    """
    if not in_place:
        return {}
    fields: dict[Var, Sequence[Any]] = {}
    steps: list[Step] = []
    calls: list[Any] = []
    expr: RelayExpr = main.body
    while isinstance(expr, Let):
        if isinstance(expr.value, Tuple):
            fields[expr.var] = expr.value.fields
        else:
            steps.append(_step(expr.var, expr.value, fields, device_of))
            calls.append(expr.value)
        expr = expr.body
    if not isinstance(expr, (Var, Tuple)):
        steps.append(_step(None, expr, fields, device_of))
        calls.append(expr)
    results = _tensors(expr, fields)
    names = output_names(main, len(results)) or [unnamed_output(place) for place in range(len(results))]
    kinds = [None] * len(results) if main.ret_type is None else flat_types(main.ret_type)
    outputs = {
        name: (one, kind if isinstance(kind, TensorType) else None)
        for name, one, kind in zip(names, results, kinds, strict=True)
    }
    inputs = {
        one.name_hint: (one, one.type_annotation if isinstance(one.type_annotation, TensorType) else None)
        for one in main.params
    }
    found: dict[Call, int] = {}
    for pair in named_pairs(in_place, inputs, outputs):
        found |= {calls[number]: place for number, place in overwriting_steps(steps, pair, results)}
    return found


def _step(
    variable: Var | None,
    value: RelayExpr,
    fields: Mapping[Var, Sequence[Any]],
    device_of: Callable[[RelayExpr], int],
) -> Step:
    makes = [] if variable is None else [variable]
    if isinstance(value, TupleGetItem):
        parts = fields.get(value.tuple_value) if isinstance(value.tuple_value, Var) else None
        taken = value.tuple_value if parts is None else parts[value.index]
        return Step("a field of a tuple", _tensors(taken, fields)[:1], makes, is_view=True)
    if not isinstance(value, Call) or not isinstance(value.op, Function) or not value.op.is_primitive:
        # A branch, a closure, a reference: what it is given may come back under another name.
        reads = [one for given in free_vars(value) for one in _tensors(given, fields)]
        return Step(type(value).__name__, reads, makes, keeps=True)
    name = " + ".join(operator_names(value.op)) or "copy"
    if any(not isinstance(argument, (Var, Constant)) or argument in fields for argument in value.args):
        reads = [one for argument in value.args for one in _tensors(argument, fields)]
        return Step(name, reads, makes)
    external = bool(value.op.attrs.get("Compiler"))
    overwrites = [] if external else in_place_parameters(value.op, device_of(value))
    return Step(name, value.args, makes, overwrites, not external and is_view(value.op))


def _tensors(expr: Any, fields: Mapping[Var, Sequence[Any]]) -> list[Any]:
    """The variables of the tensors of a value, tuples flattened."""
    if isinstance(expr, Tuple) or expr in fields:
        parts = expr.fields if isinstance(expr, Tuple) else fields[expr]
        return [one for part in parts for one in _tensors(part, fields)]
    return [expr]
