"""The roots of the expression classes of all levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from tilewright.support.dtype import DataType
from tilewright.support.node import Node
from tilewright.support.span import Span


class BaseExpr(Node):
    """Base of loop-level and graph-level expressions."""

    __slots__ = ("span",)
    span: Span | None


def inferred_type(expr: Any) -> Any:
    """The type that inference found for a graph-level expression; an error where it has not run."""
    found = getattr(expr, "_checked_type_", None)
    if found is None:
        raise ValueError(
            "the type checker has not populated the checked_type of this node; run InferType first"
        )
    return found


class RelayExpr(BaseExpr):
    """Base of graph-level expressions; ``checked_type`` is set by type inference, which marks as settled what it need
    not look at again."""

    __slots__ = ("_checked_type_", "_settled")

    @property
    def checked_type(self) -> Any:
        """The type that inference found."""
        return inferred_type(self)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The expression as text; a level whose text has meta data or annotations overrides this."""
        return repr(self)

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields replaced; its type is for inference to find again."""
        made = super().replace(**changes)
        for inferred in ("_checked_type_", "_settled"):
            if hasattr(made, inferred):
                object.__delattr__(made, inferred)
        return made


class GraphVariable:
    """Marks the variables of graph-level expressions, for structural equality: they are bound, not compared."""

    __slots__ = ()
    type_annotation: Any


@dataclass(frozen=True, slots=True)
class Id:
    """What makes a variable the one that it is: equal for the same variable only."""

    variable: Any

    @property
    def name_hint(self) -> str:
        """The name of the variable, which others may have as well."""
        return str(self.variable.name_hint)


class TypedExpr(BaseExpr):
    """An expression with a data type: the root of loop-level expressions."""

    __slots__ = ("dtype",)
    dtype: DataType
