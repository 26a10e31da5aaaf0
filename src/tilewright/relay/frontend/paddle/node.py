"""An operator of a PaddlePaddle program, as the code that converts it sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright import relay
from tilewright.relay.frontend.common.graph_node import Expr, GraphNode, Scope
from tilewright.relay.frontend.common.sizes import Size
from tilewright.relay.frontend.paddle.program import DTYPE_NUMBERS, OperatorEntry, TensorEntry


class PaddleNode(GraphNode):
    """A node with attributes of Python's kinds. ``results`` are the declared types of its first outputs."""

    def __init__(self, entry: OperatorEntry, scope: Scope, tensors: dict[str, TensorEntry]) -> None:
        super().__init__(entry.operator, entry.name, scope, entry.attributes)
        self.entry = entry
        self._tensors = tensors

    def declared(self, output: str) -> TensorEntry | None:
        """What the program says about an output."""
        names = self.entry.outputs.get(output, ())
        return self._tensors.get(names[0]) if names else None

    def flag(self, name: str, default: bool = False) -> bool:
        """An attribute that is true or false."""
        return bool(self.attr(name, default))

    def integer(self, name: str, default: int | None = None) -> int:
        """An attribute that is an integer; without a default it has to be there."""
        return int(self.attr(name) if default is None else self.attr(name, default))

    def real(self, name: str, default: float) -> float:
        """An attribute that is a number."""
        found = self.attr(name, default)
        return default if found is None else float(found)

    def text(self, name: str, default: str = "") -> str:
        """An attribute that is a word."""
        return str(self.attr(name, default) or default)

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """An attribute that is a list of integers; one integer is a list too."""
        found = self.attr(name) if default is None else self.attr(name, default)
        return [int(one) for one in found] if isinstance(found, (list, tuple)) else [int(found)]

    def kind(self, name: str, default: str) -> str:
        """An attribute that is an element type."""
        found = self.attr(name, None)
        if found is None or found == -1:
            return default
        if isinstance(found, str):
            return found if found in DTYPE_NUMBERS.values() else default
        if found not in DTYPE_NUMBERS:
            raise self.fail(f"the element type {found} is not supported")
        return DTYPE_NUMBERS[found]

    def sizes(
        self,
        name: str,
        tensor: Expr | None = None,
        scalars: Sequence[Expr] = (),
        default: Sequence[int] | None = None,
    ) -> list[Size]:
        """Integers from a tensor, from one tensor each, or from an attribute: the first that is given."""
        if tensor is not None:
            return self.elements(tensor, name)
        if scalars:
            return [self.elements(one, name)[0] for one in scalars]
        return list(self.integers(name, default))

    def known(
        self,
        name: str,
        tensor: Expr | None = None,
        scalars: Sequence[Expr] = (),
        default: Sequence[int] | None = None,
    ) -> list[int]:
        """As ``sizes``, for integers that have to be known now."""
        found = self.sizes(name, tensor, scalars, default)
        for one in found:
            if not isinstance(one, int):
                raise self.needs_value(one, name)
        return [one for one in found if isinstance(one, int)]

    def chosen_axis(self, name: str, default: int, rank: int, tensor: Expr | None = None) -> int:
        """An axis counted from the front."""
        return self.from_front(self.known(name, tensor, default=[default])[0], max(rank, 1), name)

    def scalar(self, name: str, tensor: Expr | None, default: float, like: Any) -> Expr:
        """A number of an element type, from a tensor or from an attribute."""
        if tensor is None:
            return self.constant(self.real(name, default), like)
        known = self.value(tensor)
        if known is not None:
            return self.constant(known.reshape(-1)[0].item(), like)
        return relay.cast(tensor, like if isinstance(like, str) else self.dtype(like))
