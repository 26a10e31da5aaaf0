"""Equality of expressions by structure, with variables equal only to themselves."""

from __future__ import annotations

from typing import Any

from tilewright.support.node import Node


def deep_equal(a: Any, b: Any) -> bool:
    """True if both expressions are written alike and so have the same value at the same place."""
    waiting = [(a, b)]
    while waiting:
        left, right = waiting.pop()
        if left is right:
            continue
        if isinstance(left, tuple) and isinstance(right, tuple):
            if len(left) != len(right):
                return False
            waiting.extend(zip(left, right, strict=True))
        elif isinstance(left, Node) and isinstance(right, Node):
            if (
                type(left) is not type(right)
                or not left.field_names
                or left.node_kind in ("var", "size_var", "buffer")
            ):
                return False
            waiting.extend([(getattr(left, name), getattr(right, name)) for name in left.field_names])
            if getattr(left, "dtype", None) is not getattr(right, "dtype", None):
                return False
        elif isinstance(left, Node) or isinstance(right, Node) or left != right:
            return False
    return True
