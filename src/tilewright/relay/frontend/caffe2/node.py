"""An operator of a Caffe2 network, as the code that converts it sees it."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.relay.frontend.caffe2.net import OperatorEntry
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode, Scope


class Caffe2Node(GraphNode):
    """An operator with its arguments."""

    def __init__(self, entry: OperatorEntry, scope: Scope) -> None:
        super().__init__(entry.kind, entry.name, scope, entry.attributes)
        self.entry = entry

    def integer(self, name: str, default: int) -> int:
        """An argument that is an integer."""
        return int(self.attr(name, default))

    def real(self, name: str, default: float) -> float:
        """An argument that is a number."""
        return float(self.attr(name, default))

    def text(self, name: str, default: str) -> str:
        """An argument that is a word."""
        return str(self.attr(name, default))

    def integers(self, name: str, default: Sequence[int]) -> list[int]:
        """An argument that is a list of integers."""
        return [int(one) for one in self.attr(name, default)]

    def require_order(self) -> None:
        """Refuse images whose channels are not the second axis."""
        if self.text("order", "NCHW") != "NCHW":
            raise self.fail(f"the order {self.text('order', '')!r} is not supported, only 'NCHW'")

    def pair(self, name: str, plural: str, default: int) -> list[int]:
        """A number for rows and columns: one for both, one each by its own name, or a list."""
        if plural in self.attributes:
            found = self.integers(plural, [])
            return found * 2 if len(found) == 1 else found
        whole = self.integer(name, default)
        return [self.integer(f"{name}_h", whole), self.integer(f"{name}_w", whole)]

    def padding(self) -> list[int]:
        """Padding: top, left, bottom and right."""
        if "pads" in self.attributes:
            return self.integers("pads", [])
        whole = self.integer("pad", 0)
        return [self.integer(f"pad_{side}", whole) for side in "tlbr"]

    def chosen_axis(self, name: str, default: int, data: Expr) -> int:
        """An axis counted from the front."""
        return self.axis(default, self.rank(data), name)
