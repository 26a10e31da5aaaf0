"""Which features of the language a program uses."""

from __future__ import annotations

from enum import IntEnum

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.function import BaseFunc
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.relay.adt import Match
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
from tilewright.support.node import Node


class Feature(IntEnum):
    """A feature of the language that a program may use."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    """An expression that computes something occurs in more than one place."""
    fLetRec = 16
    """A let-bound function refers to itself."""


_OF_CLASS: dict[type, Feature] = {
    Var: Feature.fVar,
    GlobalVar: Feature.fGlobalVar,
    Constant: Feature.fConstant,
    Tuple: Feature.fTuple,
    TupleGetItem: Feature.fTupleGetItem,
    Function: Feature.fFunction,
    Op: Feature.fOp,
    Call: Feature.fCall,
    Let: Feature.fLet,
    If: Feature.fIf,
    RefCreate: Feature.fRefCreate,
    RefRead: Feature.fRefRead,
    RefWrite: Feature.fRefWrite,
    Constructor: Feature.fConstructor,
    Match: Feature.fMatch,
}


def is_atomic(expr: Node) -> bool:
    """True for what costs nothing to name again: variables, constants, operators, the empty tuple."""
    return isinstance(expr, (Var, Op, GlobalVar, Constant, Constructor)) or (
        isinstance(expr, Tuple) and not expr.fields
    )


class _Detector:
    def __init__(self) -> None:
        self.found: set[Feature] = set()
        self.seen: set[Node] = set()

    def walk(self, root: Node) -> None:
        """Add the features of an expression. An entry of the stack that is None ends a let-bound function."""
        pending: list[Node | None] = [root]
        inside: list[Var] = []
        entered: set[Var] = set()
        while pending:
            current = pending.pop()
            if current is None:
                entered.discard(inside.pop())
                continue
            if isinstance(current, Var) and current in entered:
                self.found.add(Feature.fLetRec)
            if current in self.seen:
                if not is_atomic(current):
                    self.found.add(Feature.fGraph)
                continue
            self.seen.add(current)
            feature = _OF_CLASS.get(type(current))
            if feature is not None:
                self.found.add(feature)
            if isinstance(current, Let):
                self.found.add(Feature.fVar)
                pending.append(current.body)
                if isinstance(current.value, Function):
                    inside.append(current.var)
                    entered.add(current.var)
                    pending.append(None)
                pending.append(current.value)
            elif isinstance(current, Function):
                if current.params:
                    self.found.add(Feature.fVar)
                if not current.is_primitive:
                    pending.append(current.body)
            else:
                pending.extend(reversed(current.children()))


def detect_feature(a: RelayExpr | IRModule, b: RelayExpr | IRModule | None = None) -> set[Feature]:
    """The features that an expression, a module, or one of each use. The bodies of primitive functions do not count:
    they are kernels."""
    detector = _Detector()
    for given in (a, b):
        if isinstance(given, IRModule):
            for function in given.functions.values():
                if isinstance(function, BaseFunc):
                    detector.walk(function)
        elif given is not None:
            detector.walk(given)
    return detector.found
