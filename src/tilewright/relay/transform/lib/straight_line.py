"""A function's body as one graph of operators: lets resolved, calls of functions inlined.

Programs with branches, references or recursion are not graphs; for them this is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import Functor
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Constant, Let, Tuple, TupleGetItem, Var
from tilewright.relay.function import Function
from tilewright.support.errors import TilewrightError


class NotStraightLine(TilewrightError):
    """A program is not a graph of operators."""


COMPILED_APART = ("Primitive", "Compiler", "Composite")
"""The attributes of functions that are compiled as they are."""


@dataclass(eq=False)
class _Frame:
    """The values of one call: of its variables and of what it computed; those around it are the parent's."""

    parent: _Frame | None
    values: dict[RelayExpr, Any] = field(default_factory=dict)


@dataclass(eq=False)
class _Closure:
    function: Function
    frame: _Frame | None


class _StraightLine(Functor):
    """Runs a program on expressions: the value of a tensor is the expression that computes it."""

    def __init__(self, mod: IRModule | None, kept: Sequence[str]) -> None:
        self.mod = mod
        self.kept = kept
        self.frame = _Frame(None)
        self.running: list[Function] = []

    def visit(self, expr: Any) -> Any:
        """The value of an expression in the current frame."""
        values = self.frame.values
        if expr not in values:
            handler = self._handlers.get(type(expr)) or self._handler(type(expr))
            values[expr] = handler(self, expr)
        return values[expr]

    def visit_default(self, expr: Any) -> Any:
        """Branches and references."""
        raise NotStraightLine(
            f"first-order gradients are those of graphs of operators, and this program has a "
            f"{type(expr).__name__}; use mode='higher_order'",
            span=expr.span,
        )

    def visit_constant(self, const: Constant) -> Any:
        return const

    def visit_var(self, var: Var) -> Any:
        """The value that it has, within or around the function; a parameter of the whole stands for itself."""
        frame: _Frame | None = self.frame
        while frame is not None:
            if var in frame.values:
                return frame.values[var]
            frame = frame.parent
        return var

    def visit_let(self, let: Let) -> Any:
        """A chain in a loop."""
        current: RelayExpr = let
        while isinstance(current, Let):
            self.frame.values[current.var] = self.visit(current.value)
            current = current.body
        return self.visit(current)

    def visit_function(self, fn: Function) -> Any:
        return _Closure(fn, self.frame)

    def visit_global_var(self, gv: GlobalVar) -> Any:
        if self.mod is None or gv.name_hint not in self.mod:
            raise TilewrightError(f"there is no function @{gv.name_hint}: give the module to gradient")
        return _Closure(self.mod[gv.name_hint], None)

    def visit_tuple(self, tup: Tuple) -> Any:
        """The same tuple where no field changed. A tuple that holds functions is not an expression."""
        fields = [self.visit(part) for part in tup.fields]
        if any(not isinstance(one, RelayExpr) for one in fields):
            return fields
        same = all(new is old for new, old in zip(fields, tup.fields, strict=True))
        return tup if same else tup.replace(fields=tuple(fields))

    def visit_tuple_getitem(self, t: TupleGetItem) -> Any:
        """The field where the tuple is written out."""
        value = self.visit(t.tuple_value)
        if isinstance(value, list):
            return value[t.index]
        if isinstance(value, Tuple):
            return value.fields[t.index]
        return t if value is t.tuple_value else t.replace(tuple_value=value)

    def visit_call(self, call: Call) -> Any:
        """A call of an operator stays one; that of a function is what the function computes."""
        arguments = [self.visit(argument) for argument in call.args]
        if isinstance(call.op, Op) or self._is_kept(call.op):
            same = all(new is old for new, old in zip(arguments, call.args, strict=True))
            return call if same else call.replace(args=tuple(arguments))
        callee = self.visit(call.op)
        if not isinstance(callee, _Closure):
            return self.visit_default(call.op)
        if callee.function in self.running:
            raise NotStraightLine(
                "first-order gradients are those of graphs of operators, and this program calls a function from "
                "within itself; use mode='higher_order'",
                span=call.span,
            )
        saved, self.frame = self.frame, _Frame(callee.frame)
        self.frame.values.update(zip(callee.function.params, arguments, strict=True))
        self.running.append(callee.function)
        try:
            return self.visit(callee.function.body)
        finally:
            self.running.pop()
            self.frame = saved

    def _is_kept(self, callee: RelayExpr) -> bool:
        """True if a function is not to be looked into."""
        if isinstance(callee, GlobalVar) and self.mod is not None and callee.name_hint in self.mod:
            callee = self.mod[callee.name_hint]
        return isinstance(callee, Function) and any(callee.attrs.get(name) for name in self.kept)


def straight_line(function: Function, mod: IRModule | None = None, kept: Sequence[str] = ()) -> RelayExpr:
    """The body of a function as a graph over its parameters; ``NotStraightLine`` where it cannot be one. Calls of
    functions with one of the attributes ``kept`` stay."""
    made = _StraightLine(mod, kept).visit(function.body)
    if not isinstance(made, RelayExpr):
        raise NotStraightLine("the function gives a function, not tensors", span=function.span)
    return made
