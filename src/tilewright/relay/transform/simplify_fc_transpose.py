"""SimplifyFCTranspose: takes weights that a dense layer transposes at run time as already transposed parameters.

``relay.analysis.search_fc_transpose`` finds their names. The caller provides each under its name with ``.T``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.ir.base import RelayExpr
from tilewright.ir.module import IRModule
from tilewright.ir.tensor_type import TensorType
from tilewright.ir.transform import PassContext
from tilewright.relay.expr import Call, Var
from tilewright.relay.function import Function
from tilewright.relay.transform.lib.function_pass import FunctionPass
from tilewright.relay.transform.lib.rewriting import (
    OperatorRewriter,
    is_call,
    rewritten,
    shape_of,
    tensor_of,
    uses_of,
)


@dataclass
class SimplifyFCTranspose(FunctionPass):
    """Replace ``dense(x, transpose(w))`` by ``dense(x, w.T)`` for the variables of these names."""

    target_weight_name: Sequence[str]

    name = "SimplifyFCTranspose"
    opt_level = 4

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """Rewrite one function."""
        names = {str(name) for name in self.target_weight_name}
        turned: dict[Var, Var] = {}

        def rule(old: Call, new: Call) -> RelayExpr | None:
            weight = new.args[1]
            if not is_call(weight, "transpose"):
                return None
            assert isinstance(weight, Call)
            variable = weight.args[0]
            attrs: Any = weight.attrs
            if not isinstance(variable, Var) or variable.name_hint not in names:
                return None
            if tuple(attrs.axes or (1, 0)) != (1, 0):
                return None
            if variable not in turned:
                kind = TensorType(shape_of(variable)[::-1], tensor_of(variable).dtype)
                turned[variable] = Var(f"{variable.name_hint}.T", kind, variable.span)
            return new.replace(args=(new.args[0], turned[variable]))

        done = rewritten(OperatorRewriter({"nn.dense": rule}), func)
        if done is func:
            return func
        used = uses_of(done.body)
        params: list[Var] = []
        for parameter in func.params:
            if parameter not in turned or parameter in used:
                params.append(parameter)
            if parameter in turned:
                params.append(turned[parameter])
        return done.replace(params=tuple(params))
