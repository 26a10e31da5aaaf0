"""From the operations of an ML program to graph-level expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.ir.module import IRModule
from tilewright.relay.expr import TupleWrapper, Var
from tilewright.relay.frontend.common import Unsupported, check_input_names, collect_unsupported, input_type
from tilewright.relay.frontend.common.graph_node import Expr, Scope
from tilewright.relay.frontend.common.protobuf import Message
from tilewright.relay.frontend.coreml import ops as _converters
from tilewright.relay.frontend.coreml.operation import OperationNode
from tilewright.relay.frontend.coreml.registry import OPERATIONS
from tilewright.relay.frontend.coreml.weights import DTYPES, Blobs, program_value, tensor_shape
from tilewright.support.errors import ModelError

assert _converters  # importing it registers the converters

CONST = "const"


def main_function(message: Message) -> tuple[Message, Message]:
    """The function that a model runs, and its block."""
    functions = message.mlProgram.functions
    name = message.description.defaultFunctionName or "main"
    if name not in functions:
        raise ModelError(f"the ML program has no function {name!r}; it has {', '.join(sorted(functions))}")
    function = functions[name]
    blocks = function.block_specializations
    if not blocks:
        raise ModelError(f"the function {name!r} of the ML program has no block")
    return function, blocks.get(function.opset) or next(iter(blocks.values()))


def operation_name(operation: Message) -> str:
    """What an operation is called in messages: its first result."""
    return str(operation.outputs[0].name) if operation.outputs else str(operation.type)


def list_unsupported(message: Message) -> list[Unsupported]:
    """The operations of a program that cannot be converted."""
    _, block = main_function(message)
    return collect_unsupported(
        (one.type, operation_name(one))
        for one in block.operations
        if one.type != CONST and OPERATIONS.find(one.type) is None
    )


class ProgramImporter:
    """Converts the program of a model whose inputs have these shapes."""

    def __init__(self, message: Message, blobs: Blobs, shapes: Mapping[str, Any]) -> None:
        self.function, self.block = main_function(message)
        self.blobs = blobs
        self.scope = Scope(IRModule())
        self.inputs: list[Var] = []
        self.values: dict[str, Any] = {}
        names = [one.name for one in self.function.inputs]
        check_input_names(shapes, names, names)
        for one in self.function.inputs:
            kind = one.type.tensorType
            if not one.type.has("tensorType") or kind.dataType not in DTYPES:
                raise ModelError(
                    f"the input {one.name!r} is not a tensor; states and lists are not supported"
                )
            shape = shapes.get(one.name, tensor_shape(kind))
            self.inputs.append(Var(one.name, input_type(one.name, shape, DTYPES[kind.dataType])))
            self.values[one.name] = self.inputs[-1]

    def convert(self) -> tuple[list[Expr], list[str]]:
        """Convert the operations; the expressions and the names of the outputs."""
        for operation in self.block.operations:
            self._operation(operation)
        names = list(self.block.outputs)
        return [self._named(name) for name in names], names

    def _operation(self, operation: Message) -> None:
        name = operation_name(operation)
        if operation.type == CONST:
            self.values[name] = self._held(name, operation.attributes["val"])
            return
        given: dict[str, Any] = {
            key: self._held(f"{name}_{key}", value)
            for key, value in operation.attributes.items()
            if key != "name"
        }
        for key, argument in operation.inputs.items():
            bound = [
                self._held(f"{name}_{key}", one.value) if one.has("value") else self._named(one.name)
                for one in argument.arguments
            ]
            given[key] = bound[0] if len(bound) == 1 and key != "values" else bound
        node = OperationNode(operation.type, name, self.scope, given, len(operation.outputs))
        convert = OPERATIONS.find(operation.type)
        if convert is None:
            raise node.fail("the operation is not supported")
        with node.conversion():
            made = convert(node)
            results = list(made) if isinstance(made, (list, tuple, TupleWrapper)) else [made]
            if len(results) < len(operation.outputs):
                raise node.fail(
                    f"the operation has {len(operation.outputs)} results and {len(results)} were made"
                )
            for output, one in zip(operation.outputs, results, strict=False):
                self.values[output.name] = self.scope.folder.settled(one)

    def _named(self, name: str) -> Any:
        if name not in self.values:
            raise ModelError(f"the ML program is damaged: {name!r} is not computed before it is used")
        return self.values[name]

    def _held(self, name: str, value: Message) -> Any:
        """A value that the program holds: a tensor becomes an expression, texts stay as they are."""
        found = program_value(value, self.blobs)
        return self.scope.stored(name, found) if isinstance(found, np.ndarray) else found
