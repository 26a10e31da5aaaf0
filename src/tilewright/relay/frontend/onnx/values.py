"""What a name of an ONNX graph may stand for at import, other than one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.ir.base import RelayExpr


class SequenceValue:
    """A sequence of tensors at import time: its length is known, its elements are expressions. ``dtype`` is the element
    type of an empty one."""

    def __init__(self, items: Sequence[Any], dtype: str = "float32") -> None:
        self.items = list(items)
        self.dtype = dtype


class OptionalValue:
    """An optional value at import time; ``item`` is None where it is empty."""

    def __init__(self, item: Any) -> None:
        self.item = item


class ChoiceValue:
    """One of two values that no single type describes, or that are known and differ: ``first`` where ``condition``, a
    scalar known only at run time, holds, else ``second``. What reads it is converted for either value."""

    def __init__(self, condition: RelayExpr, first: Any, second: Any) -> None:
        self.condition = condition
        self.first = first
        self.second = second

    @property
    def count(self) -> int:
        """How many values it chooses from."""
        return sum(
            value.count if isinstance(value, ChoiceValue) else 1 for value in (self.first, self.second)
        )


def leaves(values: Sequence[Any]) -> list[RelayExpr]:
    """The tensors of values, those within sequences and optionals in their order."""
    found: list[RelayExpr] = []
    for value in values:
        if isinstance(value, SequenceValue):
            found += leaves(value.items)
        elif isinstance(value, OptionalValue):
            found += leaves([] if value.item is None else [value.item])
        else:
            found.append(value)
    return found


def structure(values: Sequence[Any]) -> str:
    """How sequences and optionals are nested in values: the same text for the same nesting."""
    parts = []
    for value in values:
        if isinstance(value, SequenceValue):
            parts.append(f"[{structure(value.items)}]")
        elif isinstance(value, OptionalValue):
            parts.append(f"?{structure([] if value.item is None else [value.item])}")
        else:
            parts.append(".")
    return "".join(parts)


def rebuilt(value: Any, tensors: list[RelayExpr]) -> Any:
    """A value of the same structure with tensors from the front of a list."""
    if isinstance(value, SequenceValue):
        return SequenceValue([rebuilt(item, tensors) for item in value.items], value.dtype)
    if isinstance(value, OptionalValue):
        return OptionalValue(None if value.item is None else rebuilt(value.item, tensors))
    return tensors.pop(0)
