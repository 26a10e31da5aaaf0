"""From the text of a Python function to a hybrid operation."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.support.dtype import DataType
from tilewright.support.recursion import recursion_room
from tilewright.te.hybrid.expressions import described
from tilewright.te.hybrid.loops import loop_axes
from tilewright.te.hybrid.operation import HybridOp, tensors_used
from tilewright.te.hybrid.statements import StatementParser, Widen
from tilewright.te.hybrid.symbols import Memory, with_memory
from tilewright.te.tag import current_tag
from tilewright.te.tensor import Tensor
from tilewright.tir.script.source import Source
from tilewright.tir.stmt import Stmt, stmt_seq

CALL_DEPTH = 64
"""How deep scripts may call one another."""


class Program:
    """A script's text with the names around it."""

    def __init__(
        self, source: Source, node: ast.FunctionDef, enclosed: Mapping[str, Any], module: Mapping[str, Any]
    ) -> None:
        self.source = source
        self.node = node
        self.enclosed = dict(enclosed)
        self.module = dict(module)
        names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and _is_stored(part)]
        self.assignments = dict(Counter(names))

    @property
    def name(self) -> str:
        """The function's name."""
        return self.node.name

    def parse(
        self, values: Mapping[str, Any], types: dict[ast.AST, DataType], caller: StatementParser | None = None
    ) -> tuple[list[Memory], Stmt]:
        """The memory that the script returns and its statement, which does not hold that memory."""
        depth = 0 if caller is None else caller.depth + 1
        if depth > CALL_DEPTH:
            raise self.source.error(self.node, f"{self.name} calls itself without an end")
        device = 0 if caller is None else caller.device
        parser = StatementParser(
            self.source, self.enclosed, self.module, self.assignments, types, device, depth
        )
        scope = parser.scopes[0]
        for name, value in values.items():
            scope.names[name] = parser.captured(self.node, value)
            scope.fixed.add(name)
        *body, last = self.node.body
        for stmt in body:
            parser.statement(stmt)
        if not isinstance(last, ast.Return):
            parser.statement(last)
        if not isinstance(last, ast.Return) or last.value is None:
            raise self.source.error(last, "a hybrid script ends with the return of its output tensors")
        returned = _returned(parser, last.value)
        kept = [memory for memory in scope.memory if memory not in returned]
        return returned, with_memory(kept, stmt_seq(*parser.emitted))


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _returned(parser: StatementParser, node: ast.expr) -> list[Memory]:
    """The memory of the tensors that a script returns."""
    items = node.elts if isinstance(node, (ast.Tuple, ast.List)) else [node]
    found: list[Memory] = []
    for item in items:
        value = parser.value(item)
        if isinstance(value, tuple) and len(items) == 1:
            tensors: Sequence[Any] = value
        else:
            tensors = [value]
        for tensor in tensors:
            memory = next((one for one in parser.scopes[0].memory if one.tensor is tensor), None)
            if memory is None or memory.storage_scope != "global":
                raise parser.error(item, f"{described(tensor)} is returned; output_tensor makes what can be")
            if memory in found:
                raise parser.error(item, f"{described(tensor)} is returned twice")
            found.append(memory)
    return found


def make_operation(program: Program, values: Mapping[str, Any]) -> HybridOp:
    """The operation that a script describes for these arguments."""
    types: dict[ast.AST, DataType] = {}
    while True:
        try:
            with recursion_room():
                returned, body = program.parse(values, types)
            break
        except Widen as wider:
            # Types only grow, so this ends.
            types[wider.declaration] = wider.dtype
    outputs = [memory.tensor for memory in returned]
    used = tensors_used(body)
    # Tensors among the arguments come first, in their order, whether or not the body reads them.
    given = [tensor for value in values.values() for tensor in _tensors(value)]
    inputs = [tensor for tensor in dict.fromkeys((*given, *used)) if tensor not in outputs]
    span = program.source.span(program.node)
    tag = current_tag() or "HybridOp"
    return HybridOp(program.name, tag, None, inputs, outputs, loop_axes(body), body, span)


def _tensors(value: Any) -> list[Tensor]:
    """The tensors in an argument."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []
