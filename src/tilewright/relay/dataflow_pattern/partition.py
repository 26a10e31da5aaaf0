"""Partition: every match of a pattern becomes a separate function and a call of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.relay.dataflow_pattern.groups import PARTITIONED, Grouper
from tilewright.relay.dataflow_pattern.matcher import MatchedPattern
from tilewright.relay.dataflow_pattern.rewrite import replace_groups
from tilewright.relay.expr import Call
from tilewright.relay.function import Function


def partition(
    pattern: MatchedPattern,
    expr: RelayExpr,
    attrs: Mapping[str, Any] | None = None,
    check: Callable[[RelayExpr], bool] = lambda root: True,
) -> RelayExpr:
    """The expression with a call of a function in place of each match whose root passes ``check``. The functions have
    the attributes ``attrs``, and PartitionedFromPattern, which names their operators."""
    groups = {root: group for root, group in Grouper(pattern, expr).run().items() if check(root)}

    def replace(root: Any, made: RelayExpr, rewritten: Callable[[Any], Any]) -> RelayExpr:
        group = groups[root]
        function = Function(
            group.params,
            group.body,
            attrs={**dict(attrs.items() if attrs else ()), PARTITIONED: group.name},
            span=root.span,
        )
        return Call(function, [rewritten(argument) for argument in group.args], span=root.span)

    return replace_groups(expr, groups, replace)
