"""Conditions of version 1: Switch sends a tensor to one of two sides, or of several, Merge takes whichever arrives.

All sides are converted. Every value remembers on which side of which conditions it is, by what it reads and by what it
waits for; where two sides meet, the condition chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import relay
from tilewright.relay.expr import If, Tuple, TupleGetItem, const
from tilewright.relay.frontend.common.graph_node import GraphNode
from tilewright.relay.frontend.tensorflow.control_flow import as_condition
from tilewright.relay.frontend.tensorflow.names import Reference

Sides = dict[Any, int]
"""Conditions and whether they hold (1 or 0), or numbers and which of several they are, the innermost last."""


class Conditions:
    """On which sides of conditions the outputs of nodes are."""

    def __init__(self) -> None:
        self._sides: dict[str, Sides] = {}
        self._switches: dict[str, Any] = {}

    def _of(self, reference: Reference) -> Sides:
        found = dict(self._sides.get(reference.node, {}))
        if reference.node in self._switches:
            condition = self._switches[reference.node]
            found.pop(condition, None)
            found[condition] = reference.output
        return found

    def switched(self, node: GraphNode, references: Sequence[Reference], inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a Switch: the same tensor on every side."""
        self._sides[node.name] = self._of(references[0])
        self._switches[node.name] = inputs[1]
        return [inputs[0]] * int(node.attr("num_outs", 2))

    def inherit(self, name: str, references: Sequence[Reference], given: Sequence[str]) -> None:
        """A node is where the nodes are that it reads or waits for."""
        sides: Sides = {}
        waits = [Reference(one[1:]) for one in given if one.startswith("^")]
        for reference in [*references, *waits]:
            sides.update(self._of(reference))
        if sides:
            self._sides[name] = sides

    def merged(self, node: GraphNode, references: Sequence[Reference], inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a Merge: the tensor of the side that is taken, and which input it was."""
        sides = [self._of(reference) for reference in references]
        if len(inputs) != 2 or any(self._is_number(node, condition) for side in sides for condition in side):
            return self._merged_by_number(node, sides, inputs)
        one, other = sides
        condition = self._condition(one, other)
        if condition is None:
            raise node.fail("the condition that chooses between its inputs is not clear")
        first = bool(one[condition]) if condition in one else not other[condition]
        left = {**one, **other}
        left.pop(condition)
        self._sides[node.name] = left
        known = node.value(condition)
        if known is not None:
            place = 0 if bool(known.reshape(-1)[0]) == first else 1
            return [inputs[place], const(place, "int32")]
        yes, no = inputs if first else inputs[::-1]
        places = (0, 1) if first else (1, 0)
        chosen = If(
            as_condition(node, condition),
            Tuple([yes, const(places[0], "int32")]),
            Tuple([no, const(places[1], "int32")]),
        )
        return [TupleGetItem(chosen, 0), TupleGetItem(chosen, 1)]

    @staticmethod
    def _is_number(node: GraphNode, condition: Any) -> bool:
        return node.dtype(condition) != "bool"

    def _merged_by_number(self, node: GraphNode, sides: Sequence[Sides], inputs: Sequence[Any]) -> list[Any]:
        """The tensor of the side whose number is given; of the last side for a number that there is not."""
        shared = [
            condition
            for condition in sides[-1] or sides[0]
            if self._is_number(node, condition) and sum(condition in side for side in sides) >= len(sides) - 1
        ]
        if not shared:
            raise node.fail("the number that chooses between its inputs is not clear")
        number = shared[-1]
        given = [side.get(number) for side in sides]
        # A constant may wait for nothing, and so be on no side: that which is left.
        left = [place for place in range(len(sides)) if place not in given]
        order = [place if place is not None else left[0] if left else -1 for place in given]
        if sorted(order) != list(range(len(sides))):
            raise node.fail("its inputs are not one for each side of the number that chooses")
        self._sides[node.name] = {
            condition: place for side in sides for condition, place in side.items() if condition is not number
        }
        by_side = [order.index(place) for place in range(len(sides))]
        made: Any = Tuple([inputs[by_side[-1]], const(by_side[-1], "int32")])
        for place in range(len(sides) - 2, -1, -1):
            chosen = Tuple([inputs[by_side[place]], const(by_side[place], "int32")])
            made = If(relay.equal(number, node.constant(place, number)), chosen, made)
        return [TupleGetItem(made, 0), TupleGetItem(made, 1)]

    @staticmethod
    def _condition(one: Sides, other: Sides) -> Any:
        """The innermost condition on whose sides two values are."""
        both = [condition for condition in one if condition in other and one[condition] != other[condition]]
        if both:
            return both[-1]
        # A constant may wait for nothing, and so be on no side.
        alone = [condition for condition in (*one, *other) if (condition in one) != (condition in other)]
        return alone[-1] if alone else None
