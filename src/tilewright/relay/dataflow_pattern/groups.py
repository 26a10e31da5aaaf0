"""All matches of a pattern in an expression that can be replaced independently.

Matches are searched from the result backwards. A match is skipped if it shares a computation with an earlier one, or if
something outside it uses one of its intermediate values: replacing it would leave that value uncomputed. (A use that
itself ends in the match's root is harmless.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.op import Op
from tilewright.relay.dataflow_pattern.graph import ExprGraph
from tilewright.relay.dataflow_pattern.matcher import MatchedPattern, Matcher, NodeMap
from tilewright.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tilewright.relay.function import Function
from tilewright.support.node import Node

PARTITIONED = "PartitionedFromPattern"
"""The attribute of functions that partition made: what is in them is not matched again."""


@dataclass(eq=False)
class Group:
    """One match: its root, what each pattern matched, and the function of its inputs that it computes."""

    root: RelayExpr
    matched: NodeMap
    params: list[Var]
    args: list[RelayExpr]
    body: RelayExpr
    members: list[Node]
    name: str


class _Extraction:
    """Copies what a match covers, with variables in place of its inputs."""

    def __init__(self, inputs: dict[Any, Var]) -> None:
        self.inputs = inputs
        self.made: dict[Any, Any] = {}
        self.members: list[Node] = []
        self.names: list[str] = []

    def run(self, root: Any) -> Any:
        """The body of the function; ``members`` are the nodes that it was made of, in order."""
        pending: list[tuple[Any, bool]] = [(root, False)]
        while pending:
            node, expanded = pending.pop()
            if node in self.made:
                continue
            if node in self.inputs:
                self.made[node] = self.inputs[node]
            elif expanded or isinstance(node, Function):
                self._finish(node)
            else:
                pending.append((node, True))
                pending.extend((child, False) for child in reversed(node.children()))
        return self.made[root]

    def _finish(self, node: Any) -> None:
        self.members.append(node)
        # A function stays as it is: the match covers all of it or none.
        self.made[node] = (
            node if isinstance(node, Function) else node.map_children(lambda child: self.made[child])
        )
        if isinstance(node, Call):
            self.names.append(node.op.name if isinstance(node.op, Op) else "Call")
        elif isinstance(node, Tuple):
            self.names.append("Tuple")
        elif isinstance(node, TupleGetItem):
            self.names.append(f"TupleGetItem{node.index}")
        elif isinstance(node, Function):
            self.names.append("Function")


def _patterns_in_order(pattern: MatchedPattern) -> list[MatchedPattern]:
    """The pattern and all patterns in it, once each, inner ones first."""
    order: list[MatchedPattern] = []
    seen: set[MatchedPattern] = set()
    pending = [(pattern, False)]
    while pending:
        current, expanded = pending.pop()
        if expanded:
            order.append(current)
        elif current not in seen:
            seen.add(current)
            pending.append((current, True))
            pending.extend((part, False) for part in reversed(current.parts()))
    return order


class Grouper:
    """Finds the groups of one pattern in one expression."""

    def __init__(self, pattern: MatchedPattern, root: RelayExpr) -> None:
        self.pattern = pattern
        self.patterns = _patterns_in_order(pattern)
        self.graph = ExprGraph(root)
        self.matcher = Matcher(self.graph)
        self.taken: set[Node] = set()
        self.groups: dict[Any, Group] = {}

    def run(self) -> dict[Any, Group]:
        """The groups by their roots."""
        hidden: set[Node] = set()
        for node in self.graph.order:
            if isinstance(node, Function) and node.attrs.get(PARTITIONED) is not None:
                hidden.update(post_order(node))
        for node in reversed(self.graph.order):
            if node not in self.taken and node not in hidden and isinstance(node, RelayExpr):
                matched = self.matcher.match(self.pattern, node)
                if matched is not None:
                    self._add(node, matched)
        return self.groups

    def _inputs(self, matched: NodeMap) -> dict[Any, Var]:
        """The inputs of the match, each with the parameter that replaces it."""
        interior: set[Any] = set()
        for pattern in self.patterns:
            if pattern in matched:
                interior.update(pattern.interior(matched))
        found: dict[Any, Var] = {}
        for pattern in self.patterns:
            for expr in matched.get(pattern, ()):
                for entering in pattern.inputs(expr):
                    kept = isinstance(entering, (Op, Function)) or entering in interior or entering in found
                    if not kept:
                        found[entering] = Var(f"FunctionVar_{len(self.groups)}_{len(found)}")
        return found

    def _add(self, root: Any, matched: NodeMap) -> None:
        inputs = self._inputs(matched)
        if root in inputs:
            # The whole match is a leaf: there is nothing to replace but the leaf itself.
            del inputs[root]
        extraction = _Extraction(inputs)
        body = extraction.run(root)
        members = extraction.members
        inside = set(members)
        for member in members:
            if isinstance(member, (Op, Function, Constant, Var)):
                continue
            if member in self.taken:
                return
            if member is not root:
                for user in self.graph.users.get(member, ()):
                    if user not in inside and not self.graph.dominates(root, user):
                        return
        self.taken.update(members)
        name = "".join(f"{part}_" for part in extraction.names)
        self.groups[root] = Group(root, matched, list(inputs.values()), list(inputs), body, members, name)
