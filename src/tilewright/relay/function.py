"""Functions of the graph level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tilewright.ir.attrs import Attrs, DictAttrs
from tilewright.ir.base import RelayExpr, inferred_type
from tilewright.ir.function import BaseFunc
from tilewright.ir.module import IRModule
from tilewright.ir.type import FuncType, Type, TypeVar
from tilewright.relay.expr import SHORT_TEXT, WHOLE_TEXT, Call, Var, as_attrs, unwrapped
from tilewright.support.errors import ExpressionError
from tilewright.support.node import Child, Defines, node
from tilewright.support.slot import Slot
from tilewright.support.span import Span, current_span


@node
class Function(BaseFunc):
    """A function of ``params``, generic in ``type_params``. Variables that it does not bind are those around it.

    The attribute "Primitive" marks a function that is compiled as one kernel; "Compiler" names the code generator
    that takes it; "Composite" the pattern that it matched.
    """

    params: Defines[tuple[Var, ...]]
    body: Child[RelayExpr]
    ret_type: Type | None
    type_params: Defines[tuple[TypeVar, ...]]
    attrs: DictAttrs
    span: Span | None

    def __init__(
        self,
        params: Iterable[Var],
        body: RelayExpr,
        ret_type: Type | None = None,
        type_params: Iterable[TypeVar] | None = None,
        attrs: DictAttrs | Attrs | Mapping[str, Any] | None = None,
        span: Span | None = None,
    ) -> None:
        self.params = tuple(params)
        self.body = unwrapped(body)
        self.ret_type = ret_type
        self.type_params = tuple(type_params or ())
        self.attrs = as_attrs(attrs)
        self.span = span if span is not None else current_span()
        for parameter in self.params:
            if not isinstance(parameter, Var):
                raise ExpressionError(
                    f"a parameter of a function is a variable, not {type(parameter).__name__}"
                )
        if not isinstance(self.body, RelayExpr):
            raise ExpressionError(f"the body of a function is a graph expression, not {type(body).__name__}")

    @property
    def is_primitive(self) -> bool:
        """True if the function is compiled as one kernel."""
        return bool(self.attrs.get("Primitive", 0))

    @property
    def checked_type(self) -> Any:
        """The type that inference found; of a function that says all its types, the one that they make."""
        found = getattr(self, "_checked_type_", None)
        kinds = [parameter.type_annotation for parameter in self.params]
        if found is None and self.ret_type is not None and None not in kinds:
            return FuncType([kind for kind in kinds if kind is not None], self.ret_type, self.type_params)
        return inferred_type(self)

    def __call__(self, *args: RelayExpr) -> Call:
        return Call(self, args)

    def astext(self, show_meta_data: bool = True, annotate: Any = None) -> str:
        """The function in the text form."""
        return WHOLE_TEXT.value(self, show_meta_data, annotate)

    def __str__(self) -> str:
        return SHORT_TEXT.value(self)

    __repr__ = __str__

    def verify(self, module: IRModule) -> None:
        """Raise ``VerifyError`` where the function breaks a rule of ``relay.analysis.well_formed``."""
        VERIFIER.value(self, module)


VERIFIER: Slot[Callable[[Function, IRModule], None]] = Slot("the verifier of graph-level functions")
