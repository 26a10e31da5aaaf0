"""Functions at the loop level.

A parameter is a scalar variable, or a handle that ``buffer_map`` maps to a buffer: the shape, strides and type that an
argument must have, with the variables in them bound from the argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.ir.attrs import DictAttrs
from tilewright.ir.buffer import Buffer
from tilewright.ir.expr import PrimExpr, Var
from tilewright.ir.function import BaseFunc
from tilewright.ir.module import IRModule
from tilewright.ir.type import VOID, Type
from tilewright.support import terminal
from tilewright.support.node import Child, Defines, node
from tilewright.support.slot import Slot
from tilewright.support.span import Span
from tilewright.tir import specialize as specialization
from tilewright.tir import text
from tilewright.tir.stmt import Stmt


@node
class PrimFunc(BaseFunc):
    """A function made of statements."""

    text_form = "script"

    params: Defines[tuple[Var, ...]]
    body: Child[Stmt]
    ret_type: Type
    buffer_map: Mapping[Var, Buffer]
    attrs: DictAttrs
    span: Span | None = None

    def __init__(
        self,
        params: Sequence[Var | Buffer],
        body: Stmt,
        ret_type: Type | None = None,
        buffer_map: Mapping[Var, Buffer] | None = None,
        attrs: DictAttrs | Mapping[str, Any] | None = None,
        span: Span | None = None,
    ) -> None:
        bound = dict(buffer_map or {})
        variables: list[Var] = []
        for parameter in params:
            if isinstance(parameter, Buffer):
                variable = Var(parameter.name, "handle")
                bound[variable] = parameter
                variables.append(variable)
            else:
                # A name of the builder's for memory stands for its pointer.
                variables.append(parameter if isinstance(parameter, Var) else parameter.asobject())
        self.params = tuple(variables)
        self.body = body
        self.ret_type = VOID if ret_type is None else ret_type
        self.buffer_map = bound
        self.attrs = attrs if isinstance(attrs, DictAttrs) else DictAttrs(attrs or {})
        self.span = span

    def with_body(self, new_body: Stmt, span: Span | None = None) -> PrimFunc:
        """A copy with another body."""
        return self if new_body is self.body else self.replace(body=new_body, span=span or self.span)

    def specialize(self, param_map: Mapping[Var, Buffer | PrimExpr | int]) -> PrimFunc:
        """A copy in which parameters have these values, or these buffers' shapes."""
        return specialization.specialize(self, param_map)

    def script(self, tir_prefix: str = "T", show_meta: bool = False) -> str:
        """The function in TVMScript."""
        return text.script(self, tir_prefix, show_meta)

    def show(self, style: str | None = None, black_format: bool = False) -> None:
        """Print the function; see ``IRModule.show``."""
        terminal.show(self.script(), style)

    def verify(self, module: IRModule) -> None:
        """Raise ``VerifyError`` where the function breaks a rule of ``tir.verify``."""
        VERIFIER.value(self, module)

    def __repr__(self) -> str:
        return text.script(self)


VERIFIER: Slot[Callable[[PrimFunc, IRModule], None]] = Slot("the verifier of loop-level functions")
