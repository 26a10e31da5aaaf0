"""Matching: a backtracking search with goals, choices and a trail.

A goal is a pattern and the expression that it must match. A pattern answers with the ways in which it can match the
expression, each a list of further goals; the first way is tried, the others are kept as choices for when a later goal
fails. Within one match a pattern object matches one expression: meeting it again with another is a failure.

The search has an explicit stack, so that neither deep patterns nor deep expressions need recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.type import Type
from tilewright.relay.dataflow_pattern.graph import ExprGraph
from tilewright.relay.infer import TypeInferenceError, type_of
from tilewright.support.node import Node

NodeMap = dict[Any, list[RelayExpr]]
"""The expressions that each pattern matched: one, except for the path of a dominator pattern."""


class MatchedPattern(Node):
    """The interface of a pattern for the matcher."""

    __slots__ = ()

    def ways(self, expr: Any, matcher: Matcher) -> Sequence[Sequence[Goal]]:
        """The ways in which the pattern can match the expression. None: it cannot. An empty way: it does."""
        raise NotImplementedError

    def parts(self) -> tuple[MatchedPattern, ...]:
        """The patterns within, in the order in which their inputs are counted."""
        return ()

    def inputs(self, matched: Any) -> Sequence[Any]:
        """Where the pattern ends: of an expression that it matched, what is input to the match."""
        return () if self.parts() else (matched,)

    def interior(self, matched: NodeMap) -> Sequence[Any]:
        """Expressions that belong to the match even where a pattern within would count them as its inputs."""
        return ()


Goal = tuple[MatchedPattern, Any] | tuple[Callable[["Matcher"], bool], None]
"""A pattern and its expression, or a condition to check when the goals before it are met."""

_Pending = Any
"""Goals that are left: None, or (pattern, expression, the rest)."""


class Matcher:
    """Matches patterns against the expressions of one graph."""

    def __init__(self, graph: ExprGraph) -> None:
        self.graph = graph
        self.bound: dict[Any, Any] = {}
        self._trail: list[Any] = []
        self._apart: list[NodeMap] = []

    def match(self, pattern: MatchedPattern, expr: Any) -> NodeMap | None:
        """The expressions that each subpattern matched, or None if the expression does not match."""
        self.bound, self._trail, self._apart = {}, [], []
        if not self.solve(pattern, expr):
            return None
        found: NodeMap = {known: [matched] for known, matched in self.bound.items()}
        for apart in self._apart:
            for known, matched in apart.items():
                present = found.setdefault(known, [])
                present.extend(one for one in matched if one not in present)
        return found

    def solve(self, pattern: MatchedPattern, expr: Any) -> bool:
        """Match within the current match. What is found stays bound; a failure leaves nothing behind."""
        pending: _Pending = (pattern, expr, None)
        choices: list[tuple[_Pending, tuple[int, int]]] = []
        start = self._mark()
        bound = self.bound
        while pending is not None:
            current, target, pending = pending
            if not isinstance(current, MatchedPattern):
                met = current(self)
            elif current in bound:
                met = bound[current] is target
            else:
                ways = current.ways(target, self)
                met = bool(ways)
                if ways:
                    bound[current] = target
                    self._trail.append(current)
                    for way in ways[:0:-1]:
                        choices.append((_push(way, pending), self._mark()))
                    pending = _push(ways[0], pending)
            if not met:
                if not choices:
                    self._undo(start)
                    return False
                pending, mark = choices.pop()
                self._undo(mark)
        return True

    def match_apart(self, pattern: MatchedPattern, expr: Any) -> NodeMap | None:
        """Match on its own: the same patterns may have matched other expressions before."""
        saved = self.bound, self._trail, self._apart
        try:
            return self.match(pattern, expr)
        finally:
            self.bound, self._trail, self._apart = saved

    def keep(self, apart: NodeMap) -> None:
        """Make what was matched apart a part of the current match."""
        self._apart.append(apart)

    def type_of(self, expr: RelayExpr) -> Type | None:
        """The type of an expression, inferred if need be; None where it cannot be."""
        try:
            return type_of(expr)
        except TypeInferenceError:
            return None

    def _mark(self) -> tuple[int, int]:
        return len(self._trail), len(self._apart)

    def _undo(self, mark: tuple[int, int]) -> None:
        for pattern in self._trail[mark[0] :]:
            del self.bound[pattern]
        del self._trail[mark[0] :]
        del self._apart[mark[1] :]


def _push(way: Sequence[Any], pending: _Pending) -> _Pending:
    for pattern, expr in reversed(way):
        pending = (pattern, expr, pending)
    return pending
