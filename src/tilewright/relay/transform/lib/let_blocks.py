"""Rebuilding a program block by block, with a list of let-bound values for each: the base of the normal forms."""

from __future__ import annotations

from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.functor import post_order
from tilewright.relay.adt import Clause, Match
from tilewright.relay.analysis.blocks import Block, Blocks
from tilewright.relay.expr import If, Let, Var
from tilewright.relay.expr_functor import ExprFunctor
from tilewright.relay.function import Function


def is_recursive(let: Let) -> bool:
    """True if the bound value is a function that calls itself by the variable."""
    return isinstance(let.value, Function) and any(node is let.var for node in post_order(let.value))


class BlockRebuilder(ExprFunctor):
    """Visits expressions in the order of evaluation. ``bind`` puts a value into the list of a block; when a block ends,
    its list becomes lets around its result. Lets of the program go into the lists too."""

    def __init__(self, root: RelayExpr) -> None:
        super().__init__()
        self.blocks = Blocks(root)
        self.bindings: dict[Block, list[tuple[Var, RelayExpr]]] = {}

    def bind(self, block: Block, variable: Var, value: RelayExpr) -> Var:
        """One more let at the end of a block."""
        self.bindings.setdefault(block, []).append((variable, value))
        return variable

    def finish(self, block: Block, result: RelayExpr) -> RelayExpr:
        """A block's result with the block's lets around it."""
        for variable, value in reversed(self.bindings.pop(block, [])):
            result = Let(variable, value, result, span=value.span)
        return result

    def result(self, expr: Any) -> Any:
        """The replacement of a rebuilt expression; a subclass may bind it."""
        return expr

    def bind_let(self, let: Let) -> None:
        """The variable of the program's let gets its value."""
        self.bind(self.blocks.of[let], let.var, self.visit(let.value))

    def run(self, root: RelayExpr) -> RelayExpr:
        """The whole program. A function stays a function: its body is rebuilt."""
        if isinstance(root, Function):
            inner = self.blocks.inner[root][0]
            return self.with_body(root, self.finish(inner, self.visit(root.body)))
        return self.finish(self.blocks.root, self.visit(root))

    @staticmethod
    def with_body(function: Function, body: RelayExpr) -> Function:
        """The function with another body."""
        return function if body is function.body else function.replace(body=body)

    def visit_let(self, let: Let) -> Any:
        chain: list[Let] = []
        current: Any = let
        while isinstance(current, Let) and current not in self.memo_map:
            self.bind_let(current)
            chain.append(current)
            current = current.body
        body = self.visit(current)
        for passed in chain:
            self.memo_map[passed] = body
        return body

    def rebuild_function(self, fn: Function) -> RelayExpr:
        """A function whose body is a block."""
        return self.with_body(fn, self.finish(self.blocks.inner[fn][0], self.visit(fn.body)))

    def rebuild_if(self, conditional: If) -> RelayExpr:
        """A conditional whose branches are blocks."""
        first, second = self.blocks.inner[conditional]
        cond = self.visit(conditional.cond)
        true_branch = self.finish(first, self.visit(conditional.true_branch))
        false_branch = self.finish(second, self.visit(conditional.false_branch))
        if (
            cond is conditional.cond
            and true_branch is conditional.true_branch
            and false_branch is conditional.false_branch
        ):
            return conditional
        return conditional.replace(cond=cond, true_branch=true_branch, false_branch=false_branch)

    def rebuild_match(self, match: Match) -> RelayExpr:
        """A match whose clauses' results are blocks."""
        data = self.visit(match.data)
        clauses = []
        for clause in match.clauses:
            result = self.finish(self.blocks.inner[clause][0], self.visit(clause.rhs))
            clauses.append(clause if result is clause.rhs else Clause(clause.lhs, result))
        if data is match.data and all(new is old for new, old in zip(clauses, match.clauses, strict=True)):
            return match
        return match.replace(data=data, clauses=tuple(clauses))

    def rebuild(self, expr: Any) -> Any:
        """An expression, which is not a let, of rebuilt parts."""
        if isinstance(expr, Function):
            return self.rebuild_function(expr)
        if isinstance(expr, If):
            return self.rebuild_if(expr)
        if isinstance(expr, Match):
            return self.rebuild_match(expr)
        return expr.map_children(self.visit)
