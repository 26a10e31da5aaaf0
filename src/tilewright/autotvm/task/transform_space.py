"""What the knobs of a template have in common, and the axes they transform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, ClassVar

from tilewright.ir.expr import IterVar
from tilewright.support.errors import ScheduleError
from tilewright.topi.utils import get_const_int


class InstantiationError(ScheduleError, ValueError):
    """A template cannot be instantiated with a configuration."""


@dataclass(frozen=True)
class Axis:
    """An axis that a transformation of the space makes."""

    space: Any
    index: int


class TransformSpace:
    """The possible values of a knob, its entities, and the number of axes that the transformation makes."""

    def __init__(self) -> None:
        self.ins: list[Any] = []
        self.num_output = 0
        self.entities: list[Any] = []

    def __len__(self) -> int:
        return len(self.entities)

    def __getitem__(self, index: int) -> Any:
        """The entity of an index."""
        return self.entities[index]

    @staticmethod
    def get_num_output(axes: Sequence[Any], policy: str, **kwargs: Any) -> int:
        """The number of axes after the transformation, without making the space."""
        return 0


class VirtualAxis(TransformSpace):
    """An axis of a space: the length of an axis of a schedule, of another virtual axis, or a number."""

    name_ct: ClassVar = count()

    def __init__(self, var: Any, name: str | None = None) -> None:
        super().__init__()
        self.num_output = 1
        if name is None:
            name = f"axis_{next(self.name_ct)}"
        self.name = name
        if isinstance(var, (int, float)):
            self.length = int(var)
        elif isinstance(var, IterVar):
            self.name = var.var.name
            if var.dom is None:
                self.length = -1
            else:
                self.length = int(get_const_int(var.dom.extent))
        elif isinstance(var, VirtualAxis):
            self.length = var.length
        else:
            raise InstantiationError(
                f"an axis of a space is an axis of a schedule, a virtual axis or a length, not {type(var).__name__}"
            )

    @staticmethod
    def get_num_output(axes: Sequence[Any], policy: str | None = None, **kwargs: Any) -> int:
        """One."""
        return 1

    def __repr__(self) -> str:
        return f"vaxis({self.name})"
