"""Matching on values of algebraic data types: patterns and ``Match``. The definitions are in ``ir.adt``."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.ir.adt import Constructor, TypeData
from tilewright.ir.base import RelayExpr
from tilewright.relay.expr import ExprWithOp, Var
from tilewright.support.node import Child, Children, Defines, Node, node
from tilewright.support.span import Span, current_span

__all__ = [
    "Clause",
    "Constructor",
    "Match",
    "Pattern",
    "PatternConstructor",
    "PatternTuple",
    "PatternVar",
    "PatternWildcard",
    "TypeData",
]


class Pattern(Node):
    """A pattern that a value is matched with."""

    __slots__ = ()


@node
class PatternWildcard(Pattern):
    """Matches anything."""

    # A wildcard has no fields; this one, always None, makes two of them equal.
    nothing: None

    def __init__(self) -> None:
        self.nothing = None


@node
class PatternVar(Pattern):
    """Matches anything, and names it."""

    var: Defines[Var]


@node
class PatternConstructor(Pattern):
    """Matches a value that this constructor made of values that match ``patterns``."""

    constructor: Constructor
    patterns: Children[Pattern]

    def __init__(self, constructor: Constructor, patterns: Iterable[Pattern] | None = None) -> None:
        self.constructor = constructor
        self.patterns = tuple(patterns or ())


@node
class PatternTuple(Pattern):
    """Matches a tuple whose fields match ``patterns``."""

    patterns: Children[Pattern]

    def __init__(self, patterns: Iterable[Pattern] | None = None) -> None:
        self.patterns = tuple(patterns or ())


@node
class Clause(Node):
    """Where ``lhs`` matches, ``rhs`` is the result; the pattern's variables are bound in it."""

    lhs: Pattern
    rhs: Child[RelayExpr]


@node
class Match(ExprWithOp):
    """The first clause that matches ``data``. A complete match has a clause for every value."""

    data: Child[RelayExpr]
    clauses: Children[Clause]
    complete: bool
    span: Span | None

    def __init__(
        self, data: RelayExpr, clauses: Iterable[Clause], complete: bool = True, span: Span | None = None
    ) -> None:
        self.data = data
        self.clauses = tuple(clauses)
        self.complete = bool(complete)
        self.span = span if span is not None else current_span()


def bound_variables(pattern: Pattern) -> list[Var]:
    """The variables that a pattern binds, from left to right."""
    found: list[Var] = []
    stack: list[Node] = [pattern]
    while stack:
        current = stack.pop()
        if isinstance(current, PatternVar):
            found.append(current.var)
        stack.extend(reversed(current.children()))
    return found
