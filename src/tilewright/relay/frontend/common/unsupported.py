"""One error that lists every operator of a model that a frontend cannot convert, before anything is converted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.support.errors import ModelError, OpNotImplemented

_SHOWN = 4
"""Nodes of an operator that the error names."""


@dataclass
class Unsupported:
    """One operator that cannot be converted, and the nodes that use it."""

    operator: str
    nodes: list[str] = field(default_factory=list, kw_only=True)

    @property
    def count(self) -> int:
        """How many nodes use it."""
        return len(self.nodes)

    @property
    def label(self) -> str:
        """The operator in a message; formats with domains or versions of operators add them."""
        return self.operator

    def text(self) -> str:
        """A line of the error."""
        more = f" and {self.count - _SHOWN} more" if self.count > _SHOWN else ""
        return f"  {self.label}, {self.count}: {', '.join(self.nodes[:_SHOWN])}{more}"

    def as_json(self) -> dict[str, Any]:
        """For ``tilewright compile --list-unsupported --json``."""
        return {"operator": self.operator, "count": self.count, "nodes": self.nodes}


class UnsupportedOperators(OpNotImplemented, ModelError):
    """A model has operators that cannot be converted; ``operators`` lists all of them."""

    def __init__(self, operators: Sequence[Unsupported]) -> None:
        lines = "\n".join(each.text() for each in operators)
        nodes = sum(each.count for each in operators)
        super().__init__(
            f"{len(operators)} operators of the model ({nodes} nodes) are not supported:\n{lines}"
        )
        self.operators = list(operators)


def collect_unsupported(nodes: Iterable[tuple[str, str]]) -> list[Unsupported]:
    """Group pairs of operator and node that cannot be converted by operator, in the order in which they are met."""
    found: dict[str, Unsupported] = {}
    for operator, node in nodes:
        found.setdefault(operator, Unsupported(operator)).nodes.append(node)
    return list(found.values())


def require_supported(missing: Sequence[Unsupported]) -> None:
    """Raise one error that names every operator that cannot be converted; nothing if there is none."""
    if missing:
        raise UnsupportedOperators(missing)
