"""Operators in place, and whether what they write can be seen through another name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

_RETURN_THEIR_INPUT: Final = frozenset(
    {"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"}
)
"""Operators whose schemas do not say that in inference their result is their input."""


def schema_of(target: Any) -> Any:
    """The schema of an operator; None for Python functions and higher-order operators."""
    return getattr(target, "_schema", None)


def written_arguments(schema: Any, node: Any) -> list[Any]:
    """The nodes whose tensors a call writes to."""
    found: list[Any] = []
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        given = node.kwargs.get(argument.name)
        if given is None and position < len(node.args):
            given = node.args[position]
        if given is not None:
            found += given if isinstance(given, (list, tuple)) else [given]
    return found


def _viewed(schema: Any, node: Any) -> Iterator[Any]:
    """The nodes whose memory the result of a call may share."""
    everything = str(schema.name).partition("::")[2] in _RETURN_THEIR_INPUT
    if not everything and not any(one.alias_info is not None for one in schema.returns):
        return
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is None and not (everything and position == 0):
            continue
        given = node.kwargs.get(argument.name)
        if given is None and position < len(node.args):
            given = node.args[position]
        if given is not None:
            yield from given if isinstance(given, (list, tuple)) else [given]


def needs_functionalization(graph: Any) -> bool:
    """True if a tensor is written to that is an input, or that is read afterwards under another name.

    Otherwise an operator in place is the operator without the underscore, whose result takes the place of its argument.
    """
    places = {node: place for place, node in enumerate(graph.nodes)}
    roots: dict[Any, Any] = {}
    members: dict[Any, list[Any]] = {}
    for node in graph.nodes:
        schema = schema_of(node.target) if node.op == "call_function" else None
        viewed = list(_viewed(schema, node)) if schema is not None else []
        if node.op == "call_function" and str(getattr(node.target, "__name__", "")) == "getitem":
            viewed = [node.args[0]]
        root = roots.get(viewed[0], viewed[0]) if viewed else node
        for written in written_arguments(schema, node) if schema is not None else ():
            owner = roots.get(written, written)
            if owner.op in ("placeholder", "get_attr") or len(viewed) > 1:
                return True
            others = [one for one in (owner, *members.get(owner, ())) if one is not written]
            if any(places[user] > places[node] for other in others for user in other.users):
                return True
        roots[node] = root
        if root is not node:
            members.setdefault(root, []).append(node)
    return False
