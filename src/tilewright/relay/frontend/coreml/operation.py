"""An operation of an ML program, as the code that converts it sees it: everything is an input with a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.relay.frontend.common.graph_node import Expr, GraphNode, Scope


class OperationNode(GraphNode):
    """An operation. Its inputs are expressions, texts, or lists of either."""

    def __init__(self, kind: str, name: str, scope: Scope, given: Mapping[str, Any], results: int) -> None:
        super().__init__(kind, name, scope)
        self.given = given
        self.results = results

    def has(self, name: str) -> bool:
        """True if an input is given."""
        return name in self.given

    def optional(self, name: str) -> Expr | None:
        """A tensor, or None."""
        found = self.given.get(name)
        if isinstance(found, list):
            found = found[0] if len(found) == 1 else None
        if isinstance(found, str):
            raise self.fail(f"the input {name!r} is a text, not a tensor")
        return found

    def tensor(self, name: str = "x") -> Expr:
        """A tensor that has to be there."""
        found = self.optional(name)
        if found is None:
            raise self.fail(f"the input {name!r} is missing")
        return found

    def tensors(self, name: str = "values") -> list[Expr]:
        """A list of tensors."""
        found = self.given.get(name, [])
        return list(found) if isinstance(found, list) else [found]

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """The value of an input that has to be known now."""
        return self.required_value(self.optional(name), f"the input {name!r}")

    def text(self, name: str, default: str) -> str:
        """An input that is a word."""
        found = self.given.get(name, default)
        if not isinstance(found, str):
            raise self.fail(f"the input {name!r} is not a text")
        return found

    def flag(self, name: str, default: bool = False) -> bool:
        """An input that is true or false."""
        return bool(self.array(name).reshape(-1)[0]) if self.has(name) else default

    def integer(self, name: str, default: int) -> int:
        """An input that is an integer."""
        return int(self.array(name).reshape(-1)[0]) if self.has(name) else default

    def real(self, name: str, default: float) -> float:
        """An input that is a number."""
        return float(self.array(name).reshape(-1)[0]) if self.has(name) else default

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """An input that is a list of integers."""
        if not self.has(name) and default is not None:
            return list(default)
        return [int(one) for one in self.array(name).reshape(-1)]

    def chosen_axis(self, name: str, default: int, rank: int) -> int:
        """An axis counted from the front."""
        return self.from_front(self.integer(name, default), max(rank, 1), name)
