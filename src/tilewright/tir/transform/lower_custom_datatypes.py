"""Lowers operations on custom data types to calls on unsigned integers of the same size.

The functions registered with ``tilewright.target.datatype.register_op`` make the calls. Memory and variables of a
custom type become unsigned integers.

Invariant from here on: no expression has a custom type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.expr import BinaryOpExpr, Call, Cast, CmpExpr, FloatImm, Let, Load, PrimExpr, Select, Var
from tilewright.ir.functor import Mutator
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.ir.type import PointerType, PrimType
from tilewright.support.dtype import DataType
from tilewright.target import datatype
from tilewright.target.target import Target
from tilewright.tir import op
from tilewright.tir.function import PrimFunc
from tilewright.tir.stmt import Allocate, LetStmt, Stmt
from tilewright.tir.transform.function_pass import PrimFuncPass

datatype.install_builder(op)

_ALREADY_LOWERED = frozenset({"tir.call_pure_extern", "tir.call_extern"})


def is_custom(dtype: DataType) -> bool:
    """True for a type that ``datatype.register`` made."""
    return dtype.type_code >= datatype.FIRST_CUSTOM_CODE


def _type_name(dtype: DataType) -> str:
    """The name under which lowerings of a type are registered."""
    text = str(dtype.element)
    if is_custom(dtype):
        return text.partition("[")[2].partition("]")[0]
    return text.rstrip("0123456789")


def _storage(dtype: DataType) -> DataType:
    return DataType(datatype.storage_type(dtype))


class _Lower(Mutator):
    memoize = True

    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target
        self.variables: dict[Var, Var] = {}

    def define(self, variable: Var) -> Var:
        """The variable with the type that holds its values."""
        annotation = variable.type_annotation
        made = variable
        if is_custom(variable.dtype):
            made = Var(variable.name, _storage(variable.dtype), variable.span)
        elif isinstance(annotation, PointerType) and isinstance(annotation.element_type, PrimType):
            element = annotation.element_type.dtype
            if is_custom(element):
                pointer = PointerType(PrimType(_storage(element)), annotation.storage_scope)
                made = Var(variable.name, pointer, variable.span)
        self.variables[variable] = made
        return made

    def visit_var(self, node: Var) -> Var:
        found = self.variables.get(node)
        return self.define(node) if found is None else found

    def visit_let_stmt(self, node: LetStmt) -> Stmt:
        variable = self.define(node.var)
        return (
            node.map_children(self.visit)
            if variable is node.var
            else node.map_children(self.visit).replace(var=variable)
        )

    def visit_let(self, node: Let) -> PrimExpr:
        variable, value = self.define(node.var), self.visit(node.value)
        return Let(variable, value, self.visit(node.body), node.span)

    def visit_allocate(self, node: Allocate) -> Stmt:
        variable = self.define(node.buffer_var)
        made: Allocate = node.map_children(self.visit)
        return (
            made
            if variable is node.buffer_var
            else made.replace(buffer_var=variable, dtype=_storage(node.dtype))
        )

    def visit_load(self, node: Load) -> PrimExpr:
        made: Load = node.map_children(self.visit)
        return made.replace(dtype=_storage(node.dtype)) if is_custom(node.dtype) else made

    def visit_float_imm(self, node: FloatImm) -> PrimExpr:
        return self._lowered("FloatImm", node) if is_custom(node.dtype) else node

    def visit_cast(self, node: Cast) -> PrimExpr:
        if not (is_custom(node.dtype) or is_custom(node.value.dtype)):
            return node.map_children(self.visit)
        lower = datatype.find_lower_func(
            "Cast", self.target, _type_name(node.value.dtype), _type_name(node.dtype)
        )
        return self._again(lower(node.replace(value=self.visit(node.value))))

    def visit_select(self, node: Select) -> PrimExpr:
        return Select(
            self.visit(node.condition), self.visit(node.true_value), self.visit(node.false_value), node.span
        )

    def visit_call(self, node: Call) -> PrimExpr:
        made: Call = node.map_children(self.visit)
        if not is_custom(node.dtype):
            return made
        name = node.op.name if isinstance(node.op, Op) else ""
        if name in _ALREADY_LOWERED:
            return made.replace(dtype=_storage(node.dtype))
        lower = datatype.find_lower_func("Call", self.target, _type_name(node.dtype), None, name)
        return self._again(lower(made))

    def visit_default(self, node: Any) -> Any:
        if isinstance(node, (BinaryOpExpr, CmpExpr)) and is_custom(node.a.dtype):
            # The operands are lowered first; the function sees the node with the type that it is registered for.
            operands = node.replace(a=self.visit(node.a), b=self.visit(node.b))
            return self._lowered(type(node).__name__, operands, node.a.dtype)
        return node.map_children(self.visit)

    def _lowered(self, name: str, node: Any, dtype: DataType | None = None) -> PrimExpr:
        lower = datatype.find_lower_func(name, self.target, _type_name(dtype or node.dtype))
        return self._again(lower(node))

    def _again(self, made: PrimExpr) -> PrimExpr:
        """The result of a lowering function, with its own type lowered too."""
        return (
            made.replace(dtype=_storage(made.dtype))
            if isinstance(made, Call) and is_custom(made.dtype)
            else made
        )


@dataclass(frozen=True)
class LowerCustomDatatypes(PrimFuncPass):
    """Replace custom data types by calls on unsigned integers."""

    name = "tir.LowerCustomDatatypes"

    def transform_function(self, function: PrimFunc, module: IRModule, context: PassContext) -> PrimFunc:
        if not any(map(datatype.get_type_registered, range(datatype.FIRST_CUSTOM_CODE, 256))):
            return function
        target = function.attrs.get("target")
        lower = _Lower(target.kind.name if isinstance(target, Target) else "llvm")
        params = tuple([lower.define(param) for param in function.params])
        body = lower.visit(function.body)
        same = body is function.body and all(
            new is old for new, old in zip(params, function.params, strict=True)
        )
        return function if same else function.replace(params=params, body=body)
