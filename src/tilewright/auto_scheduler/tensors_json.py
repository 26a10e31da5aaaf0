"""Graphs of operations as JSON, without code: a list of placeholders and computations, producers first.

Expressions are written as all nodes are (``ir.serialize``). Reads of tensors refer to operations by number; in the text
they are calls of an external function of this module's own name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from tilewright.ir.expr import Call, FloatImm, IntImm, PrimExpr, ProducerLoad, StringImm
from tilewright.ir.functor import Mutator
from tilewright.ir.serialize import load_json, save_json
from tilewright.support.errors import ScheduleError, TilewrightError
from tilewright.support.recursion import recursion_room
from tilewright.te.operation import ComputeOp, PlaceholderOp, share_reduction
from tilewright.te.tensor import Operation, Tensor

_READ: Final = "auto_scheduler.read_tensor"
_EXTERN: Final = "tir.call_pure_extern"
FORMAT: Final = "tilewright-operations"


def tensors_to_json(operations: Sequence[Operation], tensors: Sequence[Tensor]) -> str:
    """The text of operations in order, and of some of their tensors."""
    numbers = {operation: number for number, operation in enumerate(operations)}
    entries = [_entry(operation, numbers) for operation in operations]
    given = [[numbers[tensor.op], tensor.value_index] for tensor in tensors]
    return json.dumps({"format": FORMAT, "operations": entries, "tensors": given})


def tensors_from_json(text: str) -> tuple[list[Operation], list[Tensor]]:
    """The operations and tensors of a text."""
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise ScheduleError(f"the format is {document['format']!r}, not {FORMAT!r}")
        operations: list[Operation] = []
        for entry in document["operations"]:
            operations.append(_operation(entry, operations))
        tensors = [_tensor(operations, place) for place in document["tensors"]]
    except (json.JSONDecodeError, KeyError, TypeError, ValueError, IndexError, TilewrightError) as error:
        raise ScheduleError(f"the text is not that of a graph of operations: {error}") from error
    return operations, tensors


def _entry(operation: Operation, numbers: dict[Operation, int]) -> dict[str, Any]:
    if isinstance(operation, PlaceholderOp):
        shape = save_json(list(operation.shape))
        return {"placeholder": operation.name, "shape": shape, "dtype": str(operation.dtype)}
    if not isinstance(operation, ComputeOp):
        raise ScheduleError(
            f"operation {operation.name} ({type(operation).__name__}) cannot be written as JSON"
        )
    writer = _Numbered(numbers)
    with recursion_room():
        body = [writer.visit(value) for value in operation.body]
    attrs = {name: _attribute(value, numbers) for name, value in operation.attrs.items()}
    return {
        "compute": operation.name,
        "tag": operation.tag,
        "attrs": attrs,
        "body": save_json([list(operation.axes), body]),
    }


def _operation(entry: dict[str, Any], operations: list[Operation]) -> Operation:
    if "placeholder" in entry:
        return PlaceholderOp(entry["placeholder"], tuple(load_json(entry["shape"])), entry["dtype"])
    axes, values = load_json(entry["body"])
    reader = _Named(operations)
    with recursion_room():
        body = [reader.visit(value) for value in values]
    attrs = {name: _from_attribute(value, operations) for name, value in entry["attrs"].items()}
    return ComputeOp(entry["compute"], entry["tag"], attrs, list(axes), share_reduction(body))


def _attribute(value: Any, numbers: dict[Operation, int]) -> Any:
    if isinstance(value, Tensor):
        return {"tensor": [numbers[value.op], value.value_index]}
    if isinstance(value, (list, tuple)):
        return [_attribute(one, numbers) for one in value]
    if isinstance(value, (IntImm, FloatImm)):
        return value.value
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return {"node": save_json(value)}


def _from_attribute(value: Any, operations: list[Operation]) -> Any:
    if isinstance(value, list):
        return [_from_attribute(one, operations) for one in value]
    if isinstance(value, dict):
        return load_json(value["node"]) if "node" in value else _tensor(operations, value["tensor"])
    return value


def _tensor(operations: list[Operation], place: Any) -> Tensor:
    number, index = place
    if not isinstance(number, int) or not 0 <= number < len(operations):
        raise ScheduleError(f"a tensor of operation {number!r}, which does not come before it")
    return operations[number].output(index)


class _Numbered(Mutator):
    """Makes reads of tensors calls that name operations by number."""

    memoize = True

    def __init__(self, numbers: dict[Operation, int]) -> None:
        super().__init__()
        self.numbers = numbers

    def visit_producer_load(self, node: ProducerLoad) -> PrimExpr:
        made = node.map_children(self.visit)
        tensor = node.producer
        assert isinstance(tensor, Tensor)
        place = [StringImm(_READ), self.numbers[tensor.op], tensor.value_index]
        return Call(str(made.dtype), _EXTERN, [*place, *made.indices])


class _Named(Mutator):
    """Makes such calls reads of tensors."""

    memoize = True

    def __init__(self, operations: list[Operation]) -> None:
        super().__init__()
        self.operations = operations

    def visit_call(self, node: Call) -> PrimExpr:
        made = node.map_children(self.visit)
        name = made.args[0] if made.args else None
        if not isinstance(name, StringImm) or name.value != _READ:
            return made
        number, index = made.args[1], made.args[2]
        if not isinstance(number, IntImm) or not isinstance(index, IntImm):
            raise ScheduleError("a read of a tensor does not say which")
        return _tensor(self.operations, (number.value, index.value))(*made.args[3:])
