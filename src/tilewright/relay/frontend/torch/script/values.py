"""What a name of a TorchScript graph may stand for at import.

Numbers, strings, None, devices and tuples are Python's own. Tensors, lists and dictionaries can be changed in place by
any of their names, so they are handles: what they hold now is in the store, under their cell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tilewright.ir.base import RelayExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.support.errors import TilewrightError


class InPlaceError(TilewrightError):
    """A write in place, or what reads its result, cannot be expressed without side effects."""


class Uninitialized:
    """The value of a variable on a path that leaves before it is read."""


UNINITIALIZED: Final = Uninitialized()


class Unsettled:
    """The result of a node that could not be converted: one error names all such nodes in the end."""


@dataclass(eq=False)
class Cell:
    """A place in memory. ``level`` is the number of open frames when it was made.

    ``entangled`` are cells that may be the same memory, which cannot be decided at import: a write to one of them
    makes the others unreadable. ``attribute`` is the path of the module's attribute that it is, if it is one.
    """

    level: int
    entangled: set[Cell] = field(default_factory=set)
    attribute: str = ""


@dataclass(frozen=True)
class Unreadable:
    """In place of the content of a cell that may have changed."""

    reason: str


@dataclass(frozen=True)
class Quantization:
    """How the integers of a quantised tensor stand for numbers: ``(integer - zero) * scale``, per tensor or, with an
    axis, per index along it. Scale and zero point are numbers, or vectors as expressions."""

    scale: Any
    zero: Any
    dtype: str
    axis: int | None = None


@dataclass(eq=False)
class Tensor:
    """A tensor, or a number that only the program knows (``number`` is then "int", "float" or "bool").

    A view has a ``parent``, and ``view`` computes it from the parent's value; ``region`` is the loop in whose body it
    was made, None outside of loops.
    """

    cell: Cell
    region: Any = None
    parent: Tensor | None = None
    view: Callable[[RelayExpr], RelayExpr] | None = None
    number: str = ""
    quantization: Quantization | None = None
    computed: tuple[RelayExpr, RelayExpr] | None = None
    """The parent's value for which the view was last computed, and the view."""


@dataclass(eq=False)
class ListValue:
    """A list. What its cell holds is a Python list, or a :class:`Stack`."""

    cell: Cell


@dataclass(eq=False)
class DictValue:
    """A dictionary with known keys; its cell holds a Python dictionary."""

    cell: Cell


@dataclass(frozen=True)
class Stack:
    """The content of a list whose length the program knows: its elements have one structure, and each leaf of it is
    one tensor with the elements along its first axis."""

    element: Any
    """The structure of an element, a template."""
    leaves: tuple[RelayExpr, ...]


@dataclass(frozen=True)
class InputList:
    """The content of a list that is an input of the model: an expression of the prelude's ``List``."""

    expr: RelayExpr
    kind: Any
    """The type of the elements."""


@dataclass(eq=False)
class ModuleValue:
    """A submodule, and its path from the top."""

    module: Any
    path: tuple[str, ...]


@dataclass(frozen=True)
class ObjectValue:
    """An object that PyTorch's own code defines (packed parameters), and its path."""

    item: Any
    path: tuple[str, ...]


# Templates: the structure of values that a condition or a loop joins.


@dataclass(frozen=True)
class Leaf:
    """One tensor; or a number."""

    kind: TensorType
    number: str = ""
    quantization: Quantization | None = None


@dataclass(frozen=True)
class Fixed:
    """A value that is known."""

    value: Any


@dataclass(frozen=True)
class TupleOf:
    """A tuple."""

    items: tuple[Any, ...]


@dataclass(frozen=True)
class ListOf:
    """A list of known length."""

    items: tuple[Any, ...]


@dataclass(frozen=True)
class DictOf:
    """A dictionary."""

    items: tuple[tuple[Any, Any], ...]


@dataclass(frozen=True)
class StackOf:
    """A list whose length only the program knows."""

    element: Any
