"""Knobs of any other kind: one of several values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.autotvm.task.transform_space import InstantiationError, TransformSpace


class OtherOptionEntity:
    """A value: a number, a string, or a list of them."""

    def __init__(self, val: Any) -> None:
        self.val = val

    def __repr__(self) -> str:
        return str(self.val)


class OtherOptionSpace(TransformSpace):
    """The list ``candidate`` of values."""

    def __init__(self, axes: Sequence[Any], policy: str | None, **kwargs: Any) -> None:
        super().__init__()
        self.entities = [OtherOptionEntity(value) for value in kwargs["candidate"]]
        if not self.entities:
            raise InstantiationError("a knob needs at least one candidate")

    @staticmethod
    def get_num_output(axes: Sequence[Any], policy: str | None, **kwargs: Any) -> int:
        """A value makes no axes."""
        return 0

    def __repr__(self) -> str:
        return f"OtherOption({[entity.val for entity in self.entities]}) len={len(self)}"
