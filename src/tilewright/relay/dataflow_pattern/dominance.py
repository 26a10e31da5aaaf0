"""The condition of a dominator pattern: what is between a child and the parent that it dominates."""

from __future__ import annotations

from typing import Any

from tilewright.relay.dataflow_pattern.graph import inputs_of
from tilewright.relay.dataflow_pattern.matcher import Matcher, NodeMap
from tilewright.support.recursion import recursion_room


class _Search:
    """Walks from the child up to the parent. Every input on the way is the parent or matches the path; the other inputs
    of an expression that takes the parent itself (a bias, a scale) may be anything."""

    def __init__(self, pattern: Any, matcher: Matcher) -> None:
        self.pattern = pattern
        self.matcher = matcher
        self.reached: dict[Any, bool] = {}
        self.between: dict[Any, NodeMap] = {}

    def reaches(self, expr: Any) -> bool:
        """True if all ways up from an expression lead to the parent through the path."""
        known = self.reached.get(expr)
        if known is not None:
            return known
        inputs = inputs_of(expr)
        others = [one for one in inputs if not self.matcher.solve(self.pattern.parent, one)]
        takes_parent = len(others) < len(inputs)
        found = bool(inputs)
        for one in others:
            if not self.passes(one) and not takes_parent:
                found = False
                break
        self.reached[expr] = found
        return found

    def passes(self, expr: Any) -> bool:
        """True if an expression matches the path and leads to the parent."""
        if expr in self.between:
            return True
        matched = self.matcher.match_apart(self.pattern.path, expr)
        if matched is None or not self.reaches(expr):
            return False
        self.between[expr] = matched
        return True


def path_to_parent(pattern: Any, child: Any, matcher: Matcher) -> bool:
    """True if the child dominates an expression that matches the pattern's parent; what matched the path is
    recorded."""
    search = _Search(pattern, matcher)
    with recursion_room():
        if not search.reaches(child) or pattern.parent not in matcher.bound:
            return False
    inside = {child, *search.between}
    parent = matcher.bound[pattern.parent]
    for expr in (parent, *search.between):
        if any(user not in inside for user in matcher.graph.users.get(expr, ())):
            return False
    for matched in search.between.values():
        matcher.keep(matched)
    return True
