"""Legalize: rewrites operators into forms that the target supports."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.op import Op
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call
from tilewright.relay.function import Function
from tilewright.relay.target import legalize_rule
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import OperatorRewriter, Rule, made_type, rewritten


class _Legalizer(OperatorRewriter):
    def __init__(self, key: str) -> None:
        super().__init__({})
        self.key = key

    def rule_of(self, op: Op) -> Rule | None:
        """What is registered under the attribute, or wanted by the target."""
        registered = legalize_rule(op, self.key)
        if registered is None:
            return None

        def rule(old: Call, new: Call) -> RelayExpr | None:
            types = [*(made_type(argument) for argument in old.args), made_type(old)]
            return registered(new.attrs, list(new.args), types)

        return rule


@dataclass
class Legalize(FunctionPass):
    """Replace calls by what the target can compute: an attribute of each operator, or the target, gives it (see
    ``relay.target``).

    It takes (attrs, arguments, types of the arguments and of the result) to an expression, or None to leave the call.
    """

    legalize_map_attr_name: str = "FTVMLegalize"

    name = "Legalize"
    opt_level = 1

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        return rewritten(_Legalizer(self.legalize_map_attr_name), func)
