"""Running graph-level programs on NumPy arrays: the executable definition of the language.

Every operator is computed by its reference. Tensors are arrays, tuples Python tuples, functions ``Closure``s,
references ``RefValue``s, values of algebraic data types ``ConstructorValue``s. Within one call of a function, a shared
expression is computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import Functor
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.type import TupleType
from tilewright.relay.adt import Match, Pattern, PatternConstructor, PatternTuple, PatternVar
from tilewright.relay.expr import (
    Call,
    Constant,
    If,
    Let,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from tilewright.relay.function import Function
from tilewright.runtime.ndarray import numpy_dtype
from tilewright.support.errors import InternalError, OpNotImplemented, RuntimeFailure
from tilewright.support.options import CHECK
from tilewright.support.recursion import recursion_room


@dataclass(eq=False)
class RefValue:
    """A reference: a place that holds a value."""

    value: Any


@dataclass(eq=False)
class ConstructorValue:
    """A value that a constructor made."""

    tag: int
    fields: Sequence[Any]
    constructor: Constructor | None = None

    def __iter__(self) -> Any:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, index: int) -> Any:
        return self.fields[index]


@dataclass(eq=False)
class Frame:
    """The variables of one call, those around it, and the expressions already computed."""

    parent: Frame | None = None
    variables: dict[Var, Any] = field(default_factory=dict)
    computed: dict[RelayExpr, Any] = field(default_factory=dict)

    def find(self, variable: Var) -> Any:
        """The value of a variable."""
        frame: Frame | None = self
        while frame is not None:
            if variable in frame.variables:
                return frame.variables[variable]
            frame = frame.parent
        raise RuntimeFailure(f"variable {variable.name_hint} has no value here", span=variable.span)


@dataclass(eq=False)
class Closure:
    """A function with the variables around it."""

    function: Function
    frame: Frame | None


@dataclass(eq=False)
class TailCall:
    """A call whose result is that of the function that makes it: nothing of that function is needed any more."""

    callee: Any
    arguments: list[Any]


class Interpreter(Functor):
    """Evaluates expressions of one module."""

    def __init__(self, module: IRModule | None = None) -> None:
        self.module = module
        self.frame = Frame()

    def run(self, expr: RelayExpr, arguments: Sequence[Any] | None = None) -> Any:
        """The value of an expression; of a function, its result for these arguments."""
        with recursion_room():
            value = self.visit(expr)
            return value if arguments is None else self.call(value, list(arguments))

    def visit(self, node: RelayExpr) -> Any:
        """The value of an expression in the current frame."""
        computed = self.frame.computed
        if node in computed:
            return computed[node]
        handler = self._handlers.get(type(node)) or self._handler(type(node))
        value = handler(self, node)
        computed[node] = value
        return value

    def call(self, callee: Any, arguments: list[Any]) -> Any:
        """The result of a closure or constructor.

        Tail calls are turns of this loop: Relay's loops are functions that call themselves, for as long as they like.
        """
        saved = self.frame
        try:
            while True:
                if isinstance(callee, Constructor):
                    return ConstructorValue(callee.tag, arguments, callee)
                self.frame = _frame_of_call(callee, arguments)
                result = self.visit_tail(callee.function.body)
                if not isinstance(result, TailCall):
                    return result
                callee, arguments = result.callee, result.arguments
        finally:
            self.frame = saved

    def visit_tail(self, node: RelayExpr) -> Any:
        """The value of what a function ends with, or the call that will give it."""
        while node not in self.frame.computed:
            if isinstance(node, (Let, If, Match)):
                node = self.chosen(node)
            elif isinstance(node, Call) and not isinstance(node.op, Op):
                return TailCall(self.visit(node.op), [self.visit(argument) for argument in node.args])
            else:
                break
        return self.visit(node)

    def chosen(self, node: Let | If | Match) -> RelayExpr:
        """The part of an expression that gives its value, after what comes before it was evaluated."""
        if isinstance(node, Let):
            self.frame.variables[node.var] = self.visit(node.value)
            return node.body
        if isinstance(node, If):
            return node.true_branch if bool(self.visit(node.cond)) else node.false_branch
        value = self.visit(node.data)
        for clause in node.clauses:
            found: dict[Var, Any] = {}
            if fits(clause.lhs, value, found):
                self.frame.variables.update(found)
                return clause.rhs
        raise RuntimeFailure("no clause of a match fits the value", span=node.span)

    # Nodes

    def visit_default(self, node: Any) -> Any:
        raise InternalError(f"a {type(node).__name__} cannot be evaluated")

    def visit_var(self, node: Var) -> Any:
        return self.frame.find(node)

    def visit_global_var(self, node: GlobalVar) -> Any:
        if self.module is None or node.name_hint not in self.module:
            raise RuntimeFailure(f"there is no function @{node.name_hint} in the module", span=node.span)
        return Closure(self.module[node.name_hint], None)

    def visit_constant(self, node: Constant) -> Any:
        return node.data.numpy()

    def visit_constructor(self, node: Constructor) -> Any:
        return node

    def visit_tuple(self, node: Tuple) -> Any:
        return tuple([self.visit(value) for value in node.fields])

    def visit_tuple_getitem(self, node: TupleGetItem) -> Any:
        return self.visit(node.tuple_value)[node.index]

    def visit_function(self, node: Function) -> Any:
        """A closure over the current frame."""
        return Closure(node, self.frame)

    def visit_let(self, node: Let) -> Any:
        current: RelayExpr = node
        while isinstance(current, Let):
            current = self.chosen(current)
        return self.visit(current)

    def visit_if(self, node: If) -> Any:
        return self.visit(self.chosen(node))

    def visit_ref_create(self, node: RefCreate) -> Any:
        return RefValue(self.visit(node.value))

    def visit_ref_read(self, node: RefRead) -> Any:
        return self.visit(node.ref).value

    def visit_ref_write(self, node: RefWrite) -> Any:
        reference, value = self.visit(node.ref), self.visit(node.value)
        reference.value = value
        return ()

    def visit_match(self, node: Match) -> Any:
        """The first clause that fits."""
        return self.visit(self.chosen(node))

    def visit_call(self, node: Call) -> Any:
        """By reference for operators, by evaluation for the rest."""
        if not isinstance(node.op, Op):
            callee = self.visit(node.op)
            return self.call(callee, [self.visit(argument) for argument in node.args])
        reference = node.op.get_attr("FReference")
        if reference is None:
            raise OpNotImplemented(f"operator {node.op.name} has no reference to run", span=node.span)
        arguments = [self.visit(argument) for argument in node.args]
        with np.errstate(all="ignore"):
            value = reference(node.attrs, *arguments)
        value = _as_value(value)
        if CHECK and getattr(node, "_checked_type_", None) is not None:
            _check_value(node.op.name, value, node.checked_type)
        return value


def _frame_of_call(callee: Any, arguments: list[Any]) -> Frame:
    """The variables at the beginning of a call."""
    if not isinstance(callee, Closure):
        raise RuntimeFailure(f"a {type(callee).__name__} is called, which is not a function")
    function = callee.function
    if len(arguments) != len(function.params):
        raise RuntimeFailure(
            f"a function of {len(function.params)} parameters is called with {len(arguments)} arguments",
            span=function.span,
        )
    return Frame(callee.frame, dict(zip(function.params, arguments, strict=True)))


def _as_value(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return tuple([_as_value(part) for part in value])
    if isinstance(value, (Closure, ConstructorValue, RefValue)):
        return value
    return np.asarray(value)


def fits(pattern: Pattern, value: Any, found: dict[Var, Any]) -> bool:
    """True if the value matches; the pattern's variables are then in ``found``."""
    if isinstance(pattern, PatternVar):
        found[pattern.var] = value
        return True
    if isinstance(pattern, PatternConstructor):
        return value.tag == pattern.constructor.tag and all(
            fits(inner, part, found) for inner, part in zip(pattern.patterns, value.fields, strict=True)
        )
    if isinstance(pattern, PatternTuple):
        return all(fits(inner, part, found) for inner, part in zip(pattern.patterns, value, strict=True))
    return True


def _check_value(name: str, value: Any, expected: Any) -> None:
    """The reference keeps what the type relation promised."""
    if isinstance(expected, TupleType):
        for part, inner in zip(value, expected.fields, strict=True):
            _check_value(name, part, inner)
    elif isinstance(expected, TensorType):
        shape = tuple(getattr(extent, "value", None) for extent in expected.shape)
        fits = len(shape) == value.ndim and all(
            known is None or known == extent for known, extent in zip(shape, value.shape, strict=True)
        )
        if value.dtype != numpy_dtype(expected.dtype) or not fits:
            raise InternalError(
                f"the reference of {name} gave {value.dtype}{value.shape}, its relation says {expected}"
            )
