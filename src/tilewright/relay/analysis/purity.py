"""Side effects of expressions: what a pass may remove, and what it may move.

An unknown function may do anything. A function literal does nothing until it is called.
"""

from __future__ import annotations

from enum import IntFlag
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.relay.expr import Call, Let, RefCreate, RefRead, RefWrite, Var
from tilewright.relay.function import Function
from tilewright.support.node import Node


class Effect(IntFlag):
    """The side effects of an evaluation."""

    NONE = 0
    STATE = 1
    """It reads or makes a reference: it may be dropped, but not moved past a write or into a function."""
    WRITE = 2
    """It changes something: it can be neither dropped nor moved."""


class Effects:
    """The effects of evaluating each part of an expression."""

    def __init__(self, root: RelayExpr, mod: IRModule | None = None) -> None:
        self.mod = mod
        self.of: dict[Node, Effect] = {}
        self.when_called: dict[Node, Effect] = {}
        self._functions: dict[Var, Any] = {}
        self._globals: dict[str, Effect] = {}
        self._add(root)

    def _add(self, root: RelayExpr) -> None:
        order = post_order(root)
        for node in order:
            if isinstance(node, Let) and isinstance(node.value, Function):
                self._functions[node.var] = node.value
        for node in order:
            self.of[node] = self._effect(node)

    def _effect(self, node: Any) -> Effect:
        if isinstance(node, Function):
            self.when_called[node] = self.of[node.body]
            return Effect.NONE
        found = Effect.NONE
        for child in node.children():
            found |= self.of[child]
        if isinstance(node, RefWrite):
            found |= Effect.WRITE
        elif isinstance(node, (RefCreate, RefRead)):
            found |= Effect.STATE
        elif isinstance(node, Call):
            found |= self._called(node.op)
        return found

    def _called(self, callee: Any) -> Effect:
        """The side effects of a call."""
        if isinstance(callee, Op):
            return Effect.WRITE if callee.get_attr("TOpIsStateful") else Effect.NONE
        if isinstance(callee, Constructor):
            return Effect.NONE
        if isinstance(callee, Var) and callee in self._functions:
            # A function that is met within its own body adds nothing to what the rest of the body does.
            return self.when_called.get(self._functions[callee], Effect.NONE)
        if isinstance(callee, GlobalVar):
            return self._global(callee.name_hint)
        return self.when_called.get(callee, Effect.WRITE)

    def _global(self, name: str) -> Effect:
        known = self._globals.get(name)
        if known is None:
            # Until it is known, as in a recursion, a function of the module may do anything.
            self._globals[name] = Effect.WRITE
            function = self.mod[name] if self.mod is not None and name in self.mod else None
            if isinstance(function, Function):
                self._add(function)
                self._globals[name] = self.when_called[function]
            known = self._globals[name]
        return known
