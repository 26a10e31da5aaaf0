"""What functions of all levels share: attributes, and how they are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tilewright.ir.attrs import DictAttrs
from tilewright.ir.base import RelayExpr
from tilewright.support import html

if TYPE_CHECKING:
    from tilewright.ir.module import IRModule


class CallingConv(IntEnum):
    """How a compiled function is called; the value of the attribute "calling_conv"."""

    DEFAULT = 0
    C_PACKED_FUNC = 1
    DEVICE_KERNEL_LAUNCH = 2


class BaseFunc(RelayExpr):
    """Base of functions of all levels."""

    __slots__ = ()
    attrs: DictAttrs

    text_form: ClassVar[str] = "graph"
    """What a module of such functions is written in: "script" for TVMScript, "graph" for the graph-level text."""

    def with_attr(self, attr_key_or_dict: str | Mapping[str, Any], attr_value: Any = None) -> Self:
        """A copy with an attribute, or several, set."""
        changes = (
            {attr_key_or_dict: attr_value} if isinstance(attr_key_or_dict, str) else dict(attr_key_or_dict)
        )
        return self.replace(attrs=DictAttrs({**dict(self.attrs.items()), **changes}))

    def astext(self, show_meta_data: bool = True, annotate: Callable[[Any], str] | None = None) -> str:
        """The function as text; a level whose text has meta data or annotations overrides this."""
        return repr(self)

    def _repr_html_(self) -> str:
        """The program for a notebook."""
        return html.fragment(type(self).__name__, html.program(repr(self)))

    def verify(self, module: IRModule) -> None:
        """Raise ``VerifyError`` where the function breaks a rule of its level; it stands in ``module``."""

    def without_attr(self, attr_key: str) -> Self:
        """A copy with an attribute removed."""
        return self.replace(
            attrs=DictAttrs({key: value for key, value in self.attrs.items() if key != attr_key})
        )
