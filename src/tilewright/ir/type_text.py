"""The text of types, as the text form of graph-level programs writes them.

``Tensor[(2, ?), float32]``, ``float32`` for a tensor without dimensions, ``(int32, bool)``, ``fn [A](A) -> A``,
``ref(int32)``, ``List[int32]``, and ``_`` for a type that inference has yet to find.

A dimension is a number (``2``, ``2i64``), ``?`` where it is unknown, or an expression of named variables (``n + 1``,
``floordiv(n, 2)``).
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir import expr as nodes
from tilewright.ir.adt import TypeData
from tilewright.ir.expr import PrimExpr
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.text import ATOM, ExprPrinter
from tilewright.ir.type import (
    FuncType,
    GlobalTypeVar,
    IncompleteType,
    PointerType,
    PrimType,
    RelayRefType,
    TupleType,
    Type,
    TypeCall,
    TypeKind,
    TypeVar,
)
from tilewright.ir.type_relation import TypeRelation
from tilewright.support.dtype import INT32
from tilewright.support.recursion import recursion_room

_EXPRESSIBLE = (
    nodes.IntImm,
    nodes.Any,
    nodes.Var,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.FloorDiv,
    nodes.FloorMod,
    nodes.Min,
    nodes.Max,
)


def is_expressible(extent: PrimExpr) -> bool:
    """True if the text form has a way to write the dimension."""
    pending: list[nodes.PrimExpr] = [extent]
    while pending:
        current = pending.pop()
        if not isinstance(current, _EXPRESSIBLE) or not current.dtype.is_integral or current.dtype.is_bool:
            return False
        pending.extend(current.children())  # type: ignore[arg-type]
    return True


class DimensionPrinter(ExprPrinter):
    """Writes dimensions: ``//`` and ``%`` mean other things in this text form, so they are written as calls."""

    def __init__(self) -> None:
        super().__init__(prefix="", short=True)

    def precedence(self, node: object) -> int:
        """Calls bind tightest."""
        return (
            ATOM
            if isinstance(node, (nodes.FloorDiv, nodes.FloorMod, nodes.Var))
            else super().precedence(node)
        )

    def visit_int_imm(self, node: nodes.IntImm) -> None:
        """The digits, with the type where it is not int32."""
        self.write(
            str(node.value) if node.dtype is INT32 else f"{node.value}{node.dtype[0]}{node.dtype.bits}"
        )

    def visit_floor_div(self, node: nodes.FloorDiv) -> None:
        """The quotient, rounded down."""
        self.print_call("floordiv", node.a, node.b)

    def visit_floor_mod(self, node: nodes.FloorMod) -> None:
        """The remainder of ``floordiv``."""
        self.print_call("floormod", node.a, node.b)


class TypePrinter:
    """Writes types. Subclasses choose the names of variables."""

    def variable_name(self, variable: TypeVar) -> str:
        """The name of a type variable."""
        return variable.name_hint

    def dimension(self, extent: PrimExpr) -> str:
        """One dimension of a tensor."""
        return DimensionPrinter().text(extent)

    def text(self, given: Type) -> str:
        """The text of a type."""
        if isinstance(given, TensorType):
            return self.tensor(given)
        if isinstance(given, TupleType):
            fields = self.sequence(given.fields)
            return f"({fields},)" if len(given.fields) == 1 else f"({fields})"
        if isinstance(given, FuncType):
            head = f"fn {self.parameters(given.type_params)}({self.sequence(given.arg_types)})"
            return f"{head} -> {self.text(given.ret_type)}"
        if isinstance(given, TypeCall):
            return f"{self.text(given.func)}[{self.sequence(given.args)}]"
        if isinstance(given, TypeVar):
            return self.variable_name(given)
        if isinstance(given, RelayRefType):
            return f"ref({self.text(given.value)})"
        return self.other(given)

    def other(self, given: Type) -> str:
        """Types without parts, and those that the text form has no syntax for."""
        if isinstance(given, GlobalTypeVar):
            return given.name_hint
        if isinstance(given, IncompleteType):
            return "_"
        if isinstance(given, PrimType):
            return f"PrimType({given.dtype})"
        if isinstance(given, PointerType):
            scope = f', "{given.storage_scope}"' if given.storage_scope else ""
            return f"PointerType({self.text(given.element_type)}{scope})"
        if isinstance(given, TypeRelation):
            name = getattr(given.func, "__name__", str(given.func))
            return f"TypeRelation({name}, [{self.sequence(given.args)}], {given.num_inputs})"
        if isinstance(given, TypeData):
            return self.definition(given)
        return object.__repr__(given)

    def tensor(self, given: TensorType) -> str:
        """A tensor; one without dimensions only by its element type."""
        if not given.shape:
            return str(given.dtype)
        return f"Tensor[({', '.join([self.dimension(extent) for extent in given.shape])}), {given.dtype}]"

    def sequence(self, given: Sequence[Type]) -> str:
        """Types separated by commas."""
        return ", ".join([self.text(item) for item in given])

    def parameters(self, variables: Sequence[TypeVar]) -> str:
        """Type parameters in brackets, with their kind where they are not types; nothing where there are none."""
        if not variables:
            return ""
        shown = []
        for variable in variables:
            kind = "" if variable.kind == TypeKind.Type else f": {variable.kind.name}"
            shown.append(f"{self.variable_name(variable)}{kind}")
        return f"[{', '.join(shown)}]"

    def definition(self, data: TypeData) -> str:
        """The definition of an algebraic data type."""
        head = f"type {data.header.name_hint}{self.parameters(data.type_vars)}"
        if not data.constructors:
            return f"extern {head}"
        lines = []
        for constructor in data.constructors:
            inputs = f"({self.sequence(constructor.inputs)})" if constructor.inputs else ""
            lines.append(f"  {constructor.name_hint}{inputs},\n")
        return f"{head} {{\n{''.join(lines)}}}"


def type_text(given: Type) -> str:
    """The text of a type, under the names that its variables have."""
    with recursion_room():
        return TypePrinter().text(given)
