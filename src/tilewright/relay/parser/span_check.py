"""SpanCheck: every expression of the module must have a source location."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.adt import Constructor
from tilewright.ir.base import RelayExpr
from tilewright.ir.global_var import GlobalVar
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr_functor import post_order_visit
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.support.errors import VerifyError

_PLACELESS = (Op, GlobalVar, Constructor)


@dataclass
class SpanCheck(FunctionPass):
    """Fails on the first expression without a span. Operators, constructors and global names, which belong to no place,
    need none."""

    opt_level = 0
    name = "SpanCheck"
    typed = False

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """The function itself."""

        def check(expr: RelayExpr) -> None:
            if not isinstance(expr, _PLACELESS) and expr.span is None:
                raise VerifyError(f"a {type(expr).__name__} has no span: {expr}")

        post_order_visit(func, check)
        return func
