"""Annotators for tests of external code generators: they mark operators by hand, without checks."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.ir.base import RelayExpr
from tilewright.ir.op import Op
from tilewright.relay.expr import Call
from tilewright.relay.expr_functor import ExprMutator
from tilewright.relay.op.annotation import compiler_begin, compiler_end


class AllowedListAnnotator(ExprMutator):
    """Marks every call of the named operators as a region of its own."""

    def __init__(self, op_list: Sequence[str], compiler: str) -> None:
        super().__init__()
        self.op_list = tuple(op_list)
        self.compiler = compiler

    def visit_call(self, call: Call) -> RelayExpr:
        """The call with marks around its arguments and its result, if it is one of them."""
        made = call.map_children(self.visit)
        if not isinstance(call.op, Op) or call.op.name not in self.op_list:
            return made
        arguments = [compiler_begin(argument, self.compiler) for argument in made.args]
        return compiler_end(made.replace(args=tuple(arguments)), self.compiler)


class CcompilerAnnotator(ExprMutator):
    """Marks one region for the code generator "ccompiler": from the first addition or concatenation on a path up to the
    subtraction or product that ends it."""

    _BEGIN = ("add", "concatenate")
    _END = ("subtract", "multiply")

    def __init__(self) -> None:
        super().__init__()
        self.in_compiler = 0
        """0 outside, 1 after the end of a region was met (paths are walked backwards), 2 after its beginning."""

    def visit_call(self, call: Call) -> RelayExpr:
        """Calls on the way from the end of the region to its beginning."""
        name = call.op.name if isinstance(call.op, Op) else ""
        if name in self._BEGIN and self.in_compiler == 1:
            arguments = [compiler_begin(self.visit(argument), "ccompiler") for argument in call.args]
            self.in_compiler = 2
            return call.replace(args=tuple(arguments))
        if name in self._END and self.in_compiler == 0:
            self.in_compiler = 1
            made = call.map_children(self.visit)
            has_begun, self.in_compiler = self.in_compiler == 2, 0
            return compiler_end(made, "ccompiler") if has_begun else made
        return call.map_children(self.visit)
