"""Conditions of version 1: Switch sends a tensor to one of two sides, Merge takes whichever arrives.

Both sides are converted. Every value remembers on which side of which conditions it is, by what it reads and by what it
waits for; where two sides meet, the condition chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.relay.expr import If, Tuple, TupleGetItem, const
from tilewright.relay.frontend.common.graph_node import GraphNode
from tilewright.relay.frontend.tensorflow.control_flow import as_condition
from tilewright.relay.frontend.tensorflow.names import Reference

Sides = dict[Any, bool]
"""Conditions and whether they hold, the innermost last."""


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
            found[condition] = reference.output == 1
        return found

    def switched(self, name: str, references: Sequence[Reference], inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a Switch: the same tensor on either side."""
        self._sides[name] = self._of(references[0])
        self._switches[name] = inputs[1]
        return [inputs[0], inputs[0]]

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
        if len(inputs) != 2:
            raise node.fail(f"it joins {len(inputs)} sides, and only two are supported")
        one, other = (self._of(reference) for reference in references)
        condition = self._condition(one, other)
        if condition is None:
            raise node.fail("the condition that chooses between its inputs is not clear")
        first = one[condition] if condition in one else not other[condition]
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
    def _condition(one: Sides, other: Sides) -> Any:
        """The innermost condition on whose sides two values are."""
        both = [condition for condition in one if condition in other and one[condition] != other[condition]]
        if both:
            return both[-1]
        # A constant may wait for nothing, and so be on no side.
        alone = [condition for condition in (*one, *other) if (condition in one) != (condition in other)]
        return alone[-1] if alone else None
