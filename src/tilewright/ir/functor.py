"""Visiting and rewriting expressions.

A subclass defines ``visit_<node>`` for the nodes that it handles (``visit_add``, ``visit_buffer_load``); the others get
the default. The method is looked up once per pair of functor class and node class, and calls go from Python frame to
Python frame, so that depth costs only heap (entry points use ``support.recursion.recursion_room``).

Shared subexpressions: a rewriter whose result for a node does not depend on its context sets ``memoize = True`` and
visits each node once. Expressions are graphs, and visiting a graph as a tree can take exponential time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeVar

from tilewright.ir.expr import PrimExpr, Var
from tilewright.support.node import Node
from tilewright.support.recursion import recursion_room

Handler = Callable[[Any, Any], Any]
N = TypeVar("N", bound=Node)


class Functor:
    """Dispatch from a node to the method for its class."""

    _handlers: ClassVar[dict[type, Handler]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._handlers = {}

    @classmethod
    def _handler(cls, node_class: type) -> Handler:
        """The method for a node class: its own, the nearest base class' one, or ``visit_default``."""
        for base in node_class.__mro__:
            found = (
                getattr(cls, f"visit_{getattr(base, 'node_kind', '')}", None)
                if issubclass(base, Node)
                else None
            )
            if found is not None:
                cls._handlers[node_class] = found
                return found  # type: ignore[no-any-return]
        cls._handlers[node_class] = cls.visit_default
        return cls.visit_default

    def visit(self, node: Any) -> Any:
        """The result for a node."""
        handler = self._handlers.get(type(node)) or self._handler(type(node))
        return handler(self, node)

    def visit_default(self, node: Any) -> Any:
        """Called for nodes without a method."""
        raise NotImplementedError


class Visitor(Functor):
    """Looks at every node once for each place where it occurs, or once in all if ``once`` is set."""

    once: ClassVar[bool] = False

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._alive: list[Any] = []

    def visit(self, node: Any) -> None:
        """Look at a node."""
        if self.once:
            if id(node) in self._seen:
                return
            self._seen.add(id(node))
            self._alive.append(node)
        handler = self._handlers.get(type(node)) or self._handler(type(node))
        handler(self, node)

    def visit_default(self, node: Any) -> None:
        """Look at the children."""
        for child in node.children():
            self.visit(child)


class Mutator(Functor):
    """Rewrites bottom-up; a node whose children did not change stays the same object."""

    memoize: ClassVar[bool] = False

    def __init__(self) -> None:
        self._memo: dict[int, tuple[Any, Any]] = {}

    def visit(self, node: Any) -> Any:
        """The rewritten node."""
        if self.memoize:
            found = self._memo.get(id(node))
            if found is not None:
                return found[1]
            handler = self._handlers.get(type(node)) or self._handler(type(node))
            made = handler(self, node)
            self._memo[id(node)] = (node, made)
            return made
        handler = self._handlers.get(type(node)) or self._handler(type(node))
        return handler(self, node)

    def visit_default(self, node: Any) -> Any:
        """The node with rewritten children."""
        return node.map_children(self.visit)


ExprVisitor = Visitor
ExprMutator = Mutator


def post_order(root: Node) -> list[Node]:
    """Every distinct node below and including ``root``, children first. Iterative, and linear in the size of
    the graph."""
    order: list[Node] = []
    seen = {id(root)}
    path, pending = [root], [iter(root.children())]
    while pending:
        for child in pending[-1]:
            key = id(child)
            if key in seen:
                continue
            seen.add(key)
            children = child.children()
            if children:
                path.append(child)
                pending.append(iter(children))
                break
            order.append(child)
        else:
            pending.pop()
            order.append(path.pop())
    return order


def free_vars(root: Node) -> list[Var]:
    """The variables that an expression uses, in the order in which they are met; those bound by a Let inside
    are left out."""
    bound = {id(getattr(found, name)) for found in post_order(root) for name in found.defining_fields}
    return [found for found in post_order(root) if isinstance(found, Var) and id(found) not in bound]


def uses_var(root: Node, test: Var | Iterable[Var] | Callable[[Var], bool]) -> bool:
    """True if the expression or statement uses the variable, one of the variables, or one for which the test
    holds."""
    if isinstance(test, Var):
        return any(found is test for found in post_order(root))
    if callable(test):
        return any(isinstance(found, Var) and test(found) for found in post_order(root))
    wanted = {id(variable) for variable in test}
    return any(id(found) in wanted for found in post_order(root))


class _Substitute(Mutator):
    memoize = True

    def __init__(self, mapping: Mapping[Any, PrimExpr]) -> None:
        super().__init__()
        self.mapping = mapping

    def visit_var(self, node: Var) -> PrimExpr:
        found = self.mapping.get(node)
        return node if found is None else found


def substitute_expr(expr: N, mapping: Mapping[Any, PrimExpr]) -> N:
    """The expression with variables replaced."""
    if not mapping:
        return expr
    with recursion_room():
        return _Substitute(mapping).visit(expr)  # type: ignore[no-any-return]
