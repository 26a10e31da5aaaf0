"""An operation of a StableHLO program, as the code that converts it sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright import relay
from tilewright.relay.expr import ExprWithOp
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode, Scope
from tilewright.relay.frontend.jax.attributes import dtype_of, named_attributes, place_of, shape_of

if TYPE_CHECKING:
    from tilewright.relay.frontend.jax.importer import GraphImporter

PREFIX = "stablehlo."


def operation_name(operation: Any) -> str:
    """The name under which its converter is registered; a call of foreign code has its target's name."""
    name = str(operation.name).removeprefix(PREFIX)
    if name == "custom_call":
        return f"custom_call {named_attributes(operation)['call_target_name']}"
    return name


class JaxScope(Scope):
    """``narrow`` maps broadcast tensors to what was broadcast, with a dimension of one where it is repeated:
    operators that broadcast themselves take that."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.narrow: dict[Any, Expr] = {}


class JaxNode(GraphNode):
    """An operation, with the types of its results and the importer of the block that it stands in."""

    def __init__(self, operation: Any, graph: GraphImporter) -> None:
        name = operation_name(operation)
        super().__init__(name, place_of(operation.location) or name, graph.scope, named_attributes(operation))
        self.operation = operation
        self.graph = graph
        self.jax_scope = graph.scope

    @property
    def regions(self) -> list[Any]:
        """The blocks of its regions, one each."""
        return [region.blocks[0] for region in self.operation.regions]

    def result_shape(self, place: int = 0) -> tuple[int, ...]:
        """The shape of a result."""
        return shape_of(self.operation.results[place].type)

    def result_dtype(self, place: int = 0) -> str:
        """The element type of a result."""
        return dtype_of(self.operation.results[place].type)

    def list_attr(self, name: str, default: Any = ()) -> list[int]:
        """A list of integers."""
        return [int(one) for one in np.asarray(self.attr(name, default)).reshape(-1)]

    def settled(self, data: Expr) -> Expr:
        """A tensor; a constant where it consists of small constants."""
        found = self.scope.folder.settled(data)
        assert isinstance(found, ExprWithOp)
        return found

    # Broadcasting

    def broadcast(self, data: Expr, shape: tuple[int, ...]) -> Expr:
        """A tensor repeated along its dimensions of one, or a scalar; what it was is remembered."""
        if self.shape(data) == shape:
            return data
        small = self.settled(data)
        made = relay.broadcast_to(small, shape)
        self.jax_scope.narrow[made] = small
        return made

    def narrowed(self, *operands: Expr) -> list[Expr]:
        """Operands of an operator that broadcasts, without the repetitions that it makes itself."""
        wide = np.broadcast_shapes(*(self.static_shape(one) for one in operands))
        chosen = list(operands)
        for place, operand in enumerate(operands):
            small = self.jax_scope.narrow.get(operand)
            if small is None:
                continue
            trial = [*chosen[:place], small, *chosen[place + 1 :]]
            if np.broadcast_shapes(*(self.static_shape(one) for one in trial)) == wide:
                chosen = trial
        return chosen

    def source(self, data: Expr) -> Expr:
        """What was broadcast to make a tensor; the tensor itself otherwise."""
        return self.jax_scope.narrow.get(data, data)
