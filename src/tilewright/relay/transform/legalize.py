"""Legalize: rewrites operators into forms that the target supports."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, Rule, made_type, rewritten


class _Legalizer(OperatorRewriter):
    def __init__(self, key: str) -> None:
        super().__init__({})
        self.key = key

    def rule_of(self, op: Op) -> Rule | None:
        """The function registered under the attribute."""
        registered = op.get_attr(self.key)
        if registered is None:
            return None

        def rule(old: Call, new: Call) -> RelayExpr | None:
            types = [*(made_type(argument) for argument in old.args), made_type(old)]
            made: RelayExpr | None = registered(new.attrs, list(new.args), types)
            return made

        return rule


@dataclass
class Legalize(FunctionPass):
    """Ask what is registered under this attribute of each operator: (attrs, arguments, types of the arguments and of
    the result) to an expression, or None to leave the call."""

    legalize_map_attr_name: str = "FTVMLegalize"

    name = "Legalize"
    opt_level = 1

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(_Legalizer(self.legalize_map_attr_name), func)
