"""Printing values of attributes and annotations: plain Python for plain values, ``T.`` for the rest."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from tilewright.ir.attrs import DictAttrs
from tilewright.ir.expr import FloatImm, IntImm, PrimExpr, StringImm, Var
from tilewright.ir.text import ExprPrinter
from tilewright.ir.type import PointerType, PrimType, TupleType, Type
from tilewright.support.dtype import DataType
from tilewright.target.target import Target


class ValuePrinter(ExprPrinter):
    """Writes attribute values. Values without a text form are numbered in ``metadata``."""

    def __init__(self, prefix: str = "T", *, short: bool = False) -> None:
        super().__init__(prefix, short=short)
        self.metadata: list[Any] = []

    def value_text(self, value: Any) -> str:
        """An attribute's value as text; constants carry their class, so that they are told from plain numbers."""
        if isinstance(value, IntImm):
            return f"{self.prefix}{value.dtype}({bool(value.value) if value.dtype.is_bool else value.value})"
        if isinstance(value, FloatImm):
            return ExprPrinter(self.prefix.rstrip(".")).text(value)
        if isinstance(value, StringImm):
            return f"{self.prefix}StringImm({quoted(value.value)})"
        if isinstance(value, DataType):
            return f"{self.prefix}dtype({quoted(value)})"
        if isinstance(value, str):
            return quoted(value)
        if value is None or isinstance(value, bool):
            return repr(value)
        if isinstance(value, int):
            return str(int(value))
        if isinstance(value, float):
            return repr(value) if math.isfinite(value) else f'float("{value!r}")'
        if isinstance(value, DictAttrs):
            return self.dictionary_text(dict(value.items()))
        if isinstance(value, Mapping):
            return self.dictionary_text(value)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join([self.value_text(item) for item in value])}]"
        return self._object_text(value)

    def dictionary_text(self, values: Mapping[Any, Any]) -> str:
        """A dictionary, in its own order."""
        items = [f"{self.value_text(key)}: {self.value_text(value)}" for key, value in values.items()]
        return "{" + ", ".join(items) + "}"

    def _object_text(self, value: Any) -> str:
        if isinstance(value, Target):
            return f"{self.prefix}target({quoted(str(value))})"
        if isinstance(value, Type):
            return self.type_text(value)
        if isinstance(value, PrimExpr):
            return self.text(value)
        known = [position for position, other in enumerate(self.metadata) if other is value]
        if not known:
            self.metadata.append(value)
        return f"{self.prefix}metadata({known[0] if known else len(self.metadata) - 1})"

    def type_text(self, kind: Type) -> str:
        """A type: ``T.int32``, ``T.Ptr[T.float32, "shared"]``, None for no value."""
        if isinstance(kind, PrimType):
            return (
                f"{self.prefix}{kind.dtype}"
                if "[" not in kind.dtype
                else f"{self.prefix}dtype({quoted(kind.dtype)})"
            )
        if isinstance(kind, PointerType):
            scope = f", {quoted(kind.storage_scope)}" if kind.storage_scope else ""
            return f"{self.prefix}Ptr[{self.type_text(kind.element_type)}{scope}]"
        if isinstance(kind, TupleType):
            if not kind.fields:
                return "None"
            return f"{self.prefix}Tuple[{', '.join([self.type_text(field) for field in kind.fields])}]"
        return self._object_text(kind)

    def annotation_text(self, variable: Var) -> str:
        """The type of a variable as its annotation; a size says that it is one."""
        kind = self.type_text(variable.type_annotation)
        return f"{self.prefix}Size[{kind}]" if variable.node_kind == "size_var" else kind

    def variable_declaration(self, variable: Var) -> str:
        """The call that makes a variable like this one."""
        size = "size_var" if variable.node_kind == "size_var" else "var"
        annotation = variable.type_annotation
        if isinstance(annotation, PrimType):
            return f"{self.prefix}{size}({quoted(annotation.dtype)})"
        return f"{self.prefix}{size}({self.type_text(annotation)})"


def quoted(text: str) -> str:
    """A string in double quotes."""
    return json.dumps(str(text), ensure_ascii=False)
