"""Rewrite: every match of a pattern is replaced by the result of a callback, until nothing changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.module import IRModule
from tilewright.ir.structural import structural_equal
from tilewright.relay.dataflow_pattern.groups import Group, Grouper
from tilewright.relay.dataflow_pattern.matcher import MatchedPattern, NodeMap
from tilewright.relay.infer import infer_expr
from tilewright.support.errors import TilewrightError
from tilewright.support.span import span_scope

_MOST_ROUNDS = 100


class DFPatternCallback:
    """A pattern and what replaces its matches. A subclass sets ``pattern`` and writes ``callback``.

    ``require_type`` requires types on every expression before matching; ``rewrite_once`` runs only one round.
    """

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.pattern: MatchedPattern | None = None
        self.require_type = require_type
        self.rewrite_once = rewrite_once

    def rewrite(self, expr: RelayExpr) -> RelayExpr:
        """The expression with every match replaced."""
        return rewrite(self, expr)

    def callback(self, pre: RelayExpr, post: RelayExpr, node_map: NodeMap) -> RelayExpr:
        """Returns the replacement of a match: ``pre`` is the original root, ``post`` the root with rewritten parts;
        ``node_map`` gives for each pattern a list with the rewritten expression that it matched."""
        raise NotImplementedError(f"{type(self).__name__} does not say what replaces a match")


def replace_groups(
    expr: RelayExpr,
    groups: dict[Any, Group],
    replace: Callable[[Any, RelayExpr, Callable[[Any], Any]], RelayExpr],
) -> RelayExpr:
    """Rebuild an expression; where a group has its root, ``replace(root, root with rewritten parts, rewritten)`` gives
    what comes instead. ``rewritten`` is the function from old to new parts."""
    if not groups:
        return expr
    made: dict[Any, Any] = {}

    def rewritten(node: Any) -> Any:
        return made.get(node, node)

    for node in post_order(expr):
        current: Any = node.map_children(made.__getitem__)
        if node in groups:
            with span_scope(getattr(node, "span", None)):
                made[node] = current
                current = replace(node, current, rewritten)
            if not isinstance(current, RelayExpr):
                raise TilewrightError(
                    f"a callback gave {type(current).__name__} in place of a graph-level expression"
                )
        made[node] = current
    return made[expr]  # type: ignore[no-any-return]


def _round(callback: DFPatternCallback, expr: RelayExpr, mod: IRModule | None) -> RelayExpr:
    """Every match of one callback replaced, once."""
    if callback.pattern is None:
        raise TilewrightError(
            f"{type(callback).__name__} has no pattern: set self.pattern in its constructor"
        )
    if callback.require_type:
        expr = infer_expr(expr, mod)
    groups = Grouper(callback.pattern, expr).run()

    def replace(root: Any, made: RelayExpr, rewritten: Callable[[Any], Any]) -> RelayExpr:
        node_map = {
            pattern: [rewritten(one) for one in matched] for pattern, matched in groups[root].matched.items()
        }
        return callback.callback(root, made, node_map)

    return replace_groups(expr, groups, replace)


def rewrite(
    callbacks: DFPatternCallback | Iterable[DFPatternCallback], expr: RelayExpr, mod: IRModule | None = None
) -> RelayExpr:
    """Apply callbacks, each to all its matches, round after round until nothing changes."""
    given = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    for count in range(_MOST_ROUNDS):
        if any(callback.require_type for callback in given):
            # Inference may fill in annotations, which is not a change of the program.
            expr = infer_expr(expr, mod)
        before = expr
        for callback in given:
            if count == 0 or not callback.rewrite_once:
                expr = _round(callback, expr, mod)
        if expr is before or structural_equal(before, expr):
            return expr
    names = ", ".join(type(callback).__name__ for callback in given)
    raise TilewrightError(
        f"{_MOST_ROUNDS} rounds of {names} changed the program every time: they undo one another; "
        "pass rewrite_once=True, or let the callback return post where there is nothing to do"
    )
