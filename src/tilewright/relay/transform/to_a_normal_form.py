"""ToANormalForm: binds every value to a name.

Each operation, constant and function is bound by a let in the block that evaluates it, in the order of evaluation, and
operations take only variables. Primitive functions stay where they are called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Let, Var
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.let_blocks import BlockRebuilder


def _is_name(expr: Any) -> bool:
    """True for what needs no other name."""
    return isinstance(expr, (Var, GlobalVar, Op, Constructor)) or (
        isinstance(expr, Function) and expr.is_primitive
    )


class _Normalise(BlockRebuilder):
    def visit_default(self, expr: Any) -> Any:
        if _is_name(expr):
            return expr
        made = self.rebuild(expr)
        return self.bind(self.blocks.of[expr], Var("x", span=expr.span), made)

    def bind_let(self, let: Let) -> None:
        block, value = self.blocks.of[let], let.value
        fresh = value not in self.memo_map and not _is_name(value) and not isinstance(value, Let)
        if fresh and self.blocks.of[value] is block:
            # The value has its name already.
            self.bind(block, let.var, self.rebuild(value))
            self.memo_map[value] = let.var
        else:
            self.bind(block, let.var, self.visit(value))


def ToANormalFormExpr(e: RelayExpr) -> RelayExpr:
    """The expression in A-normal form; of a function, its body."""
    return _Normalise(e).run(e)


@dataclass
class ToANormalForm(FunctionPass):
    """Bring functions into A-normal form."""

    name = "ToANormalForm"
    opt_level = 1
    typed = False

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Bind the values of one function."""
        return func if func.is_primitive else _Normalise(func).run(func)  # type: ignore[return-value]
