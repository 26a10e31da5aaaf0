"""Places for what a module needs and may not import: typed, filled once, by the ``__init__`` of a package.

A method of a low class may need what stands further up: a call of a ``GlobalVar`` is a node of the graph level, and a
module is printed by the layer that its functions belong to. The class names a slot, and the package that holds both
sides fills it before either can be used: the slots below are filled by ``tilewright/__init__.py``, which runs before
every module of the package, and those within one layer by the ``__init__`` of that layer. So what a slot gives never
depends on what else was imported. ``docs/decisions/0005-no-meaning-by-import-order.md`` lists all of them with the
reason for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from tilewright.support.errors import InternalError

T = TypeVar("T")


class Slot(Generic[T]):
    """A value that a package gives once; asking for it before is an error."""

    __slots__ = ("_held", "purpose")

    def __init__(self, purpose: str) -> None:
        self.purpose = purpose
        self._held: tuple[T, ...] = ()

    def fill(self, value: T) -> None:
        """Give the value. Giving another one later is an error."""
        if self._held and self._held[0] is not value:
            raise InternalError(f"the slot for {self.purpose} is filled already")
        self._held = (value,)

    @property
    def value(self) -> T:
        """What the slot was filled with."""
        if not self._held:
            raise InternalError(f"the slot for {self.purpose} is used before its package has filled it")
        return self._held[0]

    def __repr__(self) -> str:
        return f"Slot({self.purpose}, {'filled' if self._held else 'empty'})"


ALL_LEVELS: Slot[Callable[[], Any]] = Slot("loading the layers that define nodes, operators and attributes")
GRAPH_CALL: Slot[Callable[[Any, tuple[Any, ...]], Any]] = Slot("graph-level calls (callee, arguments)")
GRAPH_FUNCTION: Slot[Callable[[Any], Any]] = Slot("the function of an expression's free variables")
GRAPH_FILE: Slot[Callable[[Any, str, bool], None]] = Slot(
    "reading files of graph-level definitions (module, path, whether it is in the standard library)"
)
MODULE_TEXT: Slot[Callable[..., str]] = Slot(
    "the graph-level text of modules (module, show_meta_data, annotate)"
)
MODULE_LOOK: Slot[Callable[[Any], str]] = Slot("the graph-level text of modules to look at (module)")
MODULE_SCRIPT: Slot[Callable[..., str]] = Slot("modules in TVMScript (module, prefix, show_meta)")
BUFFER_STORE: Slot[Callable[[Any, Any, Any], Any]] = Slot("store statements (buffer, value, indices)")
