"""From a PaddlePaddle program to graph-level expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import TupleWrapper, Var
from tilewright.relay.frontend.common import Unsupported, collect_unsupported, input_type
from tilewright.relay.frontend.common.graph_node import Expr, Scope
from tilewright.relay.frontend.paddle import ops as _converters
from tilewright.relay.frontend.paddle.node import PaddleNode
from tilewright.relay.frontend.paddle.program import OperatorEntry, Program, TensorEntry
from tilewright.relay.frontend.paddle.registry import find_converter
from tilewright.support.errors import ModelError

assert _converters  # importing it registers the converters


def needed_operators(program: Program) -> list[OperatorEntry]:
    """The operators that the results depend on, in the order in which they run."""
    wanted, found = set(program.outputs), []
    for one in reversed(program.operators):
        if any(name in wanted for names in one.outputs.values() for name in names):
            found.append(one)
            wanted.update(name for names in one.inputs.values() for name in names)
    return found[::-1]


def list_unsupported(program: Program) -> list[Unsupported]:
    """The operators of a program that cannot be converted."""
    return collect_unsupported(
        (one.operator, one.name) for one in needed_operators(program) if find_converter(one.operator) is None
    )


class ProgramImporter:
    """Converts a program whose parameters have these values and whose inputs have these shapes."""

    def __init__(
        self,
        program: Program,
        scope: Scope,
        parameters: Mapping[str, np.ndarray[Any, Any]],
        shapes: Mapping[str, Any],
    ) -> None:
        self.program = program
        self.scope = scope
        self.parameters = parameters
        self.inputs: list[Var] = []
        self.values: dict[str, Any] = {}
        for name in program.inputs:
            declared = program.tensors[name]
            shape = shapes.get(name, declared.shape)
            self.inputs.append(Var(name, input_type(name, shape, declared.dtype)))
            self.values[name] = self.inputs[-1]

    def convert(self) -> list[Expr]:
        """Convert the operators; the expressions of the results."""
        for one in needed_operators(self.program):
            entry = find_converter(one.operator)
            node = PaddleNode(one, self.scope, self.program.tensors)
            if entry is None:
                raise node.fail("the operator is not supported")
            with node.conversion():
                given = []
                for read in entry.reads:
                    found = [self._tensor(name, node) for name in one.inputs.get(read.rstrip("*"), ())]
                    given.append(found if read.endswith("*") else (found[0] if found else None))
                made = entry.convert(node, *given)
                if len(entry.writes) == 1:
                    made = (made,)
                for write, result in zip(entry.writes, made, strict=True):
                    self._keep(node, write, result)
        return [self._tensor(name, None) for name in self.program.outputs]

    def _keep(self, node: PaddleNode, write: str, result: Any) -> None:
        names = node.entry.outputs.get(write.rstrip("*"), ())
        results = list(result) if isinstance(result, (list, tuple, TupleWrapper)) else [result]
        if write.endswith("*") and len(names) != len(results):
            raise node.fail(f"the operator has {len(names)} results and {len(results)} were made")
        for name, one in zip(names, results, strict=False):
            if one is not None:
                settled: Any = self.scope.folder.settled(one)
                self.values[name] = _as_declared(node, settled, self.program.tensors.get(name))

    def _tensor(self, name: str, node: PaddleNode | None) -> Expr:
        if name in self.values:
            found: Expr = self.values[name]
            return found
        if name in self.parameters:
            made = self.scope.stored(name, self.parameters[name])
            self.values[name] = made
            return made
        message = f"the tensor {name!r} is neither computed, nor an input, nor among the parameters"
        raise node.fail(message) if node is not None else ModelError(message)


def _as_declared(node: PaddleNode, result: Expr, declared: TensorEntry | None) -> Expr:
    """A single element as a scalar or as a vector, as the program declares it: versions of PaddlePaddle differ."""
    if declared is not None and declared.shape in ((), (1,)):
        shape = node.shape(result)
        if shape in ((), (1,)) and shape != declared.shape:
            followed = node.scope.vectors.get(result)
            made: Expr = node.scope.folder.settled(relay.reshape(result, declared.shape))  # type: ignore[assignment]
            if followed is not None:
                node.scope.vectors[made] = followed
            return made
    return result
